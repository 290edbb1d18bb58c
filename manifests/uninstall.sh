#!/bin/sh
# Removes dra-operator: sh manifests/uninstall.sh [flags of kubectl, such as --context=NAME]
#
# Pods that wait at its gate go to kube-scheduler, pools lose their taint, claims keep what they have. Each step may find its work done:
# run it again after a failure, or when the operator, its namespace or its custom resource definition is gone already.
# DRA_OPERATOR_IMAGE names the image of the release Job; by default the one that the Deployment runs.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mine=app.kubernetes.io/name=dra-operator
namespace=dra-operator
job=dra-operator-release

say() { printf '%s\n' "uninstall: $*"; }
fail() { printf '%s\n' "uninstall: $*" >&2; exit 1; }

kubectl "$@" get namespace default --output=name >/dev/null || fail "kubectl does not reach the cluster, or may not read namespaces"
kinds=$(kubectl "$@" api-resources --output=name --no-headers 2>/dev/null) || true
served() { printf '%s\n' "$kinds" | grep -qx -- "$1"; }

say "1/6 gate policy: new pods get no gate"
if served mutatingadmissionpolicies.admissionregistration.k8s.io; then
  kubectl "$@" delete --ignore-not-found mutatingadmissionpolicybinding/dra-operator-gate mutatingadmissionpolicy/dra-operator-gate
fi

say "2/6 operator: stopped"
image=${DRA_OPERATOR_IMAGE:-}
deployment=$(kubectl "$@" --namespace=$namespace get deployment dra-operator --ignore-not-found --output=name)
if [ -n "$deployment" ]; then
  if [ -z "$image" ]; then
    image=$(kubectl "$@" --namespace=$namespace get "$deployment" --output='jsonpath={.spec.template.spec.containers[?(@.name=="dra-operator")].image}')
  fi
  kubectl "$@" --namespace=$namespace scale "$deployment" --replicas=0
fi
# A namespace in deletion takes no Job: it has to be gone first, and is made anew for the Job.
going=$(kubectl "$@" get namespace $namespace --ignore-not-found --output='jsonpath={.metadata.deletionTimestamp}')
if [ -n "$going" ]; then
  say "namespace $namespace is being deleted: waiting for its end"
  kubectl "$@" wait --for=delete namespace/$namespace --timeout=180s ||
    fail "namespace $namespace does not go; kubectl describe namespace $namespace tells why. Then run this again"
else
  running() { kubectl "$@" --namespace=$namespace get pods --selector=$mine --output=name; }
  if [ -n "$(running "$@")" ]; then
    # It complains where the last pod ends just before it looks, so look again.
    kubectl "$@" --namespace=$namespace wait --for=delete pod --selector=$mine --timeout=90s || [ -z "$(running "$@")" ] ||
      fail "a pod of the operator does not end. If its node is lost for good: kubectl --namespace=$namespace delete pod --selector=$mine --force. Then run this again"
  fi
fi

say "3/6 release: gates, taint rules, finalizers and annotations"
kubectl "$@" --namespace=$namespace delete job $job --ignore-not-found
# 0.1.0 could not release yet.
shipped=$(sed -n 's/^ *image: dra-operator://p' "$here/release/job.yaml")
case "$image" in *:0.1.0) image=${image%:0.1.0}:$shipped ;; esac
kubectl kustomize "$here/release" | sed "s|^\( *image: \)dra-operator:.*|\1${image:-dra-operator:$shipped}|" | kubectl "$@" apply --filename=-
seen=""
while :; do
  state=$(kubectl "$@" --namespace=$namespace get job $job --output='jsonpath={range .status.conditions[?(@.status=="True")]}{.type} {end}')
  case " $state" in *" Complete "* | *" Failed "*) break ;; esac
  waiting=$(kubectl "$@" --namespace=$namespace get pods --selector=batch.kubernetes.io/job-name=$job \
    --output='jsonpath={range .items[*]}{.status.containerStatuses[*].state.waiting.message}{.status.conditions[?(@.reason=="Unschedulable")].message}{end}')
  if [ "$waiting" != "$seen" ]; then
    seen=$waiting
    if [ -n "$waiting" ]; then say "the Job waits: $waiting"; fi
  fi
  sleep 1
done
kubectl "$@" --namespace=$namespace logs --selector=batch.kubernetes.io/job-name=$job --tail=-1 2>/dev/null ||
  kubectl "$@" --namespace=$namespace get pods --selector=batch.kubernetes.io/job-name=$job \
    --output='jsonpath={range .items[*]}{.status.containerStatuses[*].state.terminated.message}{"\n"}{end}'
case " $state" in
*" Failed "*) fail "the release Job failed, see above. Nothing else was removed: mend what it names and run this again" ;;
esac

say "4/6 policies and their kind"
kubectl "$@" delete crd allocationpolicies.dra-operator.io --ignore-not-found --timeout=120s ||
  fail "the AllocationPolicies do not go; kubectl get allocationpolicies --output=yaml tells which finalizer keeps them"

say "5/6 rights and namespace"
kubectl "$@" delete clusterrolebindings,clusterroles --selector=$mine
kubectl "$@" delete namespace $namespace --ignore-not-found --timeout=180s ||
  fail "namespace $namespace does not go; kubectl describe namespace $namespace tells why"

say "6/6 check"
looked=""
for kind in namespaces customresourcedefinitions.apiextensions.k8s.io clusterroles.rbac.authorization.k8s.io \
  clusterrolebindings.rbac.authorization.k8s.io mutatingadmissionpolicies.admissionregistration.k8s.io \
  mutatingadmissionpolicybindings.admissionregistration.k8s.io deployments.apps jobs.batch configmaps services serviceaccounts; do
  if served "$kind"; then looked="$looked${looked:+,}$kind"; fi
done
left=$(kubectl "$@" get "$looked" --all-namespaces --selector=$mine --output=name --ignore-not-found)
if served devicetaintrules.resource.k8s.io; then
  left="$left$(kubectl "$@" get devicetaintrules --selector=dra-operator.io/policy --output=name)"
fi
if [ -n "$left" ]; then fail "these are left: $(printf '%s' "$left" | tr '\n' ' ')"; fi
labelled=$(kubectl "$@" get namespaces --selector=dra-operator.io/enabled --output='jsonpath={.items[*].metadata.name}')
if [ -n "$labelled" ]; then say "your label dra-operator.io/enabled stays on these namespaces, without effect: $labelled"; fi
bound=$(kubectl "$@" get clusterrolebindings --output='jsonpath={range .items[*]}{.roleRef.name} {.metadata.name}{"\n"}{end}' |
  sed -n -e 's/^dra-operator-view //p' -e 's/^dra-operator-device-viewer //p' -e 's/^dra-operator-policy-editor //p' | paste -s -d ' ' -)
if [ -n "$bound" ]; then say "your ClusterRoleBindings to its roles stay, without effect: $bound"; fi
say "dra-operator is removed"
