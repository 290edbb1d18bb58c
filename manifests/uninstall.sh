#!/bin/sh
# Removes dra-operator: sh manifests/uninstall.sh [flags of kubectl, such as --context=NAME]
#
# Pods that wait at its gate go to kube-scheduler, pools lose their taint, claims keep what they have. Each step may find its work done:
# run it again after a failure, or when the operator, its namespace or its custom resource definition is gone already.
# An operator in mode replace (overlays/replace) is stopped first and no more, until DRA_OPERATOR_STOCK_PARTS=on says that kube-scheduler
# allocates and kube-controller-manager generates again: a gate that opens before that leads nowhere.
# The release Job gets its image, the settings and what else its pod needs from the Deployment. DRA_OPERATOR_IMAGE and
# DRA_OPERATOR_SETTLE_SECONDS win over that: for when the Deployment is gone, or the operator ran elsewhere.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
namespace=dra-operator
job=dra-operator-release
kind=allocationpolicies.dra-operator.io
pods=--selector=app.kubernetes.io/name=dra-operator
job_pods=--selector=batch.kubernetes.io/job-name=$job
webhook=mutatingwebhookconfiguration/dra-operator-gate
gate="mutatingadmissionpolicybinding/dra-operator-gate mutatingadmissionpolicy/dra-operator-gate $webhook"
# By name: labels are anybody's.
rights="clusterrolebinding/dra-operator clusterrolebinding/dra-operator-generate-claims clusterrolebinding/dra-operator-replace-refused clusterrolebinding/dra-operator-release
  clusterrole/dra-operator clusterrole/dra-operator-generate-claims clusterrole/dra-operator-replace-refused clusterrole/dra-operator-release
  clusterrole/dra-operator-view clusterrole/dra-operator-device-viewer clusterrole/dra-operator-policy-editor"

say() { printf '%s\n' "uninstall: $*"; }
fail() { trap - EXIT; say "$*" >&2; exit 1; }
trap '[ $? = 0 ] || say "a step failed, see above. Nothing after it was done: mend that and run this again" >&2' EXIT
# get OBJECT JSONPATH [flags]: nothing if the object or the field is not there.
get() { object=$1 path=$2; shift 2; kubectl "$@" --namespace=$namespace get "$object" --ignore-not-found --output="jsonpath=$path"; }

kubectl "$@" get namespace default --output=name >/dev/null || fail "kubectl does not reach the cluster, or may not read namespaces"
# It fails as well if only an aggregated API is down, and tells the others all the same.
served=$(kubectl "$@" api-resources --output=name --no-headers) || true
is_served() { printf '%s\n' "$served" | grep -qx -- "$1"; }
is_served clusterroles.rbac.authorization.k8s.io || fail "kubectl api-resources does not tell what there is. Nothing was removed: run this again"
is_served mutatingadmissionpolicies.admissionregistration.k8s.io || gate=$webhook

say "1/6 gate policy, or webhook: new pods get no gate"
kubectl "$@" delete --ignore-not-found $gate

say "2/6 operator: stopped"
deployment=$(get deployment/dra-operator '{.metadata.name}' "$@")
container='.spec.template.spec.containers[?(@.name=="dra-operator")]'
image=${DRA_OPERATOR_IMAGE:-$(get deployment/dra-operator "{$container.image}" "$@")}
[ -z "$deployment" ] || kubectl "$@" --namespace=$namespace scale deployment dra-operator --replicas=0
# A namespace in deletion takes no Job: it has to be gone first, and is made anew for the Job.
going=$(get namespace/$namespace '{.metadata.deletionTimestamp}' "$@")
if [ -n "$going" ]; then
  deployment=""
  say "namespace $namespace is being deleted: waiting for its end"
  kubectl "$@" wait --for=delete namespace/$namespace --timeout=180s ||
    fail "namespace $namespace does not go; kubectl describe namespace $namespace tells why. Then run this again"
else
  running() { kubectl "$@" --namespace=$namespace get pods $pods --output=name; }
  alive=$(running "$@")
  if [ -n "$alive" ]; then
    # It complains where the last pod ends just before it looks, so look again.
    kubectl "$@" --namespace=$namespace wait --for=delete pod $pods --timeout=90s || [ -z "$(running "$@")" ] ||
      fail "a pod of the operator does not end. If its node is lost for good: kubectl --namespace=$namespace delete pod $pods --force. Then run this again"
  fi
fi

mode=""
if [ -n "$deployment" ]; then
  settings=$(get deployment/dra-operator '{.spec.template.spec.volumes[?(@.name=="config")].configMap.name}' "$@")
  chosen=$(get deployment/dra-operator "{$container.args}{$container.env[?(@.name==\"DRA_OPERATOR_MODE\")].value}" "$@")
  file=""
  [ -z "$settings" ] || file=$(get "configmap/$settings" '{.data.config\.yaml}' "$@")
  # A flag or a variable wins over the file.
  case "$chosen" in
  *mode=replace* | *]replace) mode=replace ;;
  *mode=cooperate* | *]cooperate) ;;
  *) if printf '%s\n' "$file" | grep -Eq '^mode: *"?replace"? *(#|$)'; then mode=replace; fi ;;
  esac
fi
if [ "$mode" = replace ] && [ "${DRA_OPERATOR_STOCK_PARTS:-}" != on ]; then
  fail "the operator was in mode replace and is stopped. Now switch on kube-scheduler's DynamicResources plugin and kube-controller-manager's resourceclaim-controller, then run this again with DRA_OPERATOR_STOCK_PARTS=on in its environment"
fi

say "3/6 release: gates, taint rules, finalizers and annotations"
args='["release","--log-format=json"]' pod="" more=""
if [ -n "$deployment" ]; then
  # A line of JSON for each field that the Deployment has, as it is there.
  fields() { path=$1; shift; for field; do printf '"%s":{%s.%s},{"\\n"}' "$field" "$path" "$field"; done; }
  given() { template=$1; shift; found=$(get deployment/dra-operator "$template" "$@") && printf '%s\n' "$found" | sed '/^"[A-Za-z]*":,$/d'; }
  pod=$(given "$(fields .spec.template.spec affinity imagePullSecrets nodeSelector tolerations volumes)" "$@")
  more=$(given "$(fields "$container" env envFrom resources volumeMounts)\"imagePullPolicy\":\"{$container.imagePullPolicy}\"," "$@")
  case $pod in *'"imagePullSecrets":'*) ;; *)
    secrets=$(get serviceaccount/dra-operator '{.imagePullSecrets}' "$@")
    pod="$pod${secrets:+\"imagePullSecrets\":$secrets,}" ;;
  esac
  run=$(get deployment/dra-operator "{$container.args}" "$@")
  case $run in '["run"'*) args="[\"release\"${run#'["run"'}" ;; esac
fi
if [ -n "${DRA_OPERATOR_SETTLE_SECONDS:-}" ]; then args="${args%]},\"--settle-seconds=$DRA_OPERATOR_SETTLE_SECONDS\"]"; fi
# 0.1.0 could not release yet.
shipped=$(sed -n 's/^ *image: dra-operator://p' "$here/release/job.yaml")
case "$image" in *:0.1.0) image=${image%:0.1.0}:$shipped ;; esac
more="$more\"name\":\"release\",\"image\":\"${image:-dra-operator:$shipped}\",\"args\":$args"
kubectl "$@" --namespace=$namespace delete job $job --ignore-not-found
kubectl "$@" apply --kustomize="$here/release" --selector='app.kubernetes.io/component!=release-job'
kubectl "$@" create --kustomize="$here/release" --selector=app.kubernetes.io/component=release-job --dry-run=client --output=json |
  kubectl patch --local --filename=- --patch="{\"spec\":{\"template\":{\"spec\":{$pod\"containers\":[{$more}]}}}}" --output=json |
  kubectl "$@" apply --filename=-
seen="" misses=0 turns=0
while :; do
  if state=$(get job/$job '{range .status.conditions[?(@.status=="True")]}{.type} {end}' "$@") &&
    waiting=$(kubectl "$@" --namespace=$namespace get pods $job_pods \
      --output='jsonpath={range .items[*]}{.status.containerStatuses[*].state.waiting.message}{.status.conditions[?(@.reason=="Unschedulable")].message}{end}'); then
    misses=0
    case " $state" in *" Complete "* | *" Failed "*) break ;; esac
    if [ "$waiting" != "$seen" ]; then
      seen=$waiting
      [ -z "$waiting" ] || say "the Job waits: $waiting"
    fi
    turns=$((turns + 1))
    [ $((turns % 30)) != 0 ] || say "the Job has not ended yet; kubectl --namespace=$namespace describe pods $job_pods tells how it does"
  else
    misses=$((misses + 1))
    [ $misses -lt 30 ] || fail "the release Job cannot be asked after. It goes on by itself: run this again when kubectl reaches the cluster"
  fi
  sleep 1
done
kubectl "$@" --namespace=$namespace logs $job_pods --tail=-1 2>/dev/null ||
  kubectl "$@" --namespace=$namespace get pods $job_pods --output='jsonpath={range .items[*]}{.status.containerStatuses[*].state.terminated.message}{"\n"}{end}'
case " $state" in
*" Failed "*) fail "the release Job failed, see above. Nothing else was removed: mend what it names and run this again" ;;
esac

say "4/6 policies and their kind"
kubectl "$@" delete crd $kind --ignore-not-found --timeout=120s ||
  fail "the AllocationPolicies do not go; kubectl get allocationpolicies --output=yaml tells which finalizer keeps them"

say "5/6 rights and namespace"
kubectl "$@" delete --ignore-not-found $rights
kubectl "$@" delete namespace $namespace --ignore-not-found --timeout=180s ||
  fail "namespace $namespace does not go; kubectl describe namespace $namespace tells why"

say "6/6 check"
left=$(kubectl "$@" get --ignore-not-found --output=name namespace/$namespace crd/$kind $gate $rights)
if is_served devicetaintrules.resource.k8s.io; then
  left="$left $(kubectl "$@" get devicetaintrules --selector=dra-operator.io/policy --output=name)"
fi
[ -z "${left# }" ] || fail "these are left: $(printf '%s' "$left" | tr '\n' ' ')"
labelled=$(kubectl "$@" get namespaces --selector=dra-operator.io/enabled --output='jsonpath={.items[*].metadata.name}')
[ -z "$labelled" ] || say "your label dra-operator.io/enabled stays on these namespaces, without effect: $labelled"
bound=$(kubectl "$@" get clusterrolebindings --output='jsonpath={range .items[*]}{.roleRef.name} {.metadata.name}{"\n"}{end}' |
  sed -n -e 's/^dra-operator-view //p' -e 's/^dra-operator-device-viewer //p' -e 's/^dra-operator-policy-editor //p' | paste -s -d ' ' -)
[ -z "$bound" ] || say "your ClusterRoleBindings to its roles stay, without effect: $bound"
say "dra-operator is removed"
