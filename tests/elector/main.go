// elector stands for election as koord-manager of the original does: with client-go's elector, the Lease, the durations and the form of identity
// that controller-runtime gives it. It says on standard output what happens, one word and one name a line, until its standard input ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the cluster")
	namespace := flag.String("namespace", "koordinator-system", "where the Lease is")
	release := flag.Bool("release", false, "give the Lease back at the end")
	flag.Parse()
	if err := stand(*kubeconfig, *namespace, *release); err != nil {
		fmt.Fprintln(os.Stderr, "elector:", err)
		os.Exit(1)
	}
}

func stand(kubeconfig, namespace string, release bool) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	const renew = 10 * time.Second
	identity := host + "_" + string(uuid.NewUUID())
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, "koordinator-manager",
		resourcelock.ResourceLockConfig{Identity: identity}, rest.AddUserAgent(config, "leader-election"), renew)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println("standing", identity)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   renew,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: release,
		Name:            "koordinator-manager",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { fmt.Println("leading", identity) },
			OnStoppedLeading: func() { fmt.Println("stopped", identity) },
			OnNewLeader:      func(leader string) { fmt.Println("sees", leader) },
		},
	})
	return nil
}
