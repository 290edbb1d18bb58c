// Command controlplane holds the stock Kubernetes control plane in one binary: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, each chosen by the first argument. The end-to-end tests
// (tests/e2e/harness) build it from the Go modules named in go.mod and run one process for each component.
//
// Nothing of the components is changed here. Two commands are extra: "keygen FILE" writes the private key that signs
// service-account tokens, so that a machine needs no openssl, and "guard COMMAND" runs another program (kwok).
//
// With DRA_E2E_STDIN_GUARD set, a component stops when its standard input ends: a test session that is killed leaves no
// control plane behind. A guarded command always does.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const (
	usage      = "usage: controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flags]\n       controlplane keygen FILE\n       controlplane guard COMMAND [argument...]"
	guardEnv   = "DRA_E2E_STDIN_GUARD"
	rsaBits    = 2048
	keyMode    = 0o600
	exitUsage  = 2
	exitFailed = 1
	signalBase = 128
	grace      = 5 * time.Second
)

// Exits with the component's own status.
func main() {
	if len(os.Args) < 2 {
		fail(exitUsage, errors.New(usage))
	}
	// The component's name becomes argv[0]: cobra and etcd read the flags behind it.
	os.Args = os.Args[1:]
	if os.Getenv(guardEnv) != "" {
		go whenStdinEnds(func() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) })
	}
	switch os.Args[0] {
	case "etcd":
		etcdmain.Main(os.Args)
	case "keygen":
		if err := keygen(os.Args[1:]); err != nil {
			fail(exitFailed, err)
		}
	case "guard":
		if err := guard(os.Args[1:]); err != nil {
			fail(exitFailed, err)
		}
	default:
		cmd, err := component(os.Args[0])
		if err != nil {
			fail(exitUsage, err)
		}
		os.Exit(cli.Run(cmd))
	}
}

func component(name string) (*cobra.Command, error) {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand(), nil
	case "kube-controller-manager":
		return kcm.NewControllerManagerCommand(), nil
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand(), nil
	}
	return nil, fmt.Errorf("unknown component %q\n%s", name, usage)
}

// keygen writes a new RSA private key in PEM form to the file that args names.
func keygen(args []string) error {
	if len(args) != 1 {
		return errors.New(usage)
	}
	key, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return fmt.Errorf("generate key: %w", err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(args[0], pem.EncodeToMemory(block), keyMode)
}

// guard runs a command until it ends, its own standard input ends, or a signal to stop comes, which the command gets too.
func guard(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	// The kernel ties the command to the thread that starts it (Pdeathsig), so that thread must stay.
	runtime.LockOSThread()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", args[0], err)
	}
	go whenStdinEnds(func() { stop <- syscall.SIGTERM })
	go func() {
		for s := range stop {
			_ = cmd.Process.Signal(s)
		}
	}()
	return exitAs(cmd.Wait())
}

// exitAs ends the process with the status of the command that it guarded; a signal counts as a shell counts it.
func exitAs(err error) error {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		return err
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		os.Exit(signalBase + int(status.Signal()))
	}
	os.Exit(ended.ExitCode())
	return nil
}

// whenStdinEnds calls act once nobody holds the other end of the standard input any more, and ends the process for good if
// it is still there some seconds later: kube-apiserver waits for an etcd that may have gone first.
func whenStdinEnds(act func()) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	act()
	time.Sleep(grace)
	os.Exit(exitFailed)
}

func fail(status int, err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(status)
}
