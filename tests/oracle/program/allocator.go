package main

// Allocations, answered with what k8s.io/dynamic-resource-allocation/structured exports. One line is one problem: claims, what is published
// and what is taken.

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

const (
	// As in the scheduler.
	cachedPrograms = 10

	defaultTimeoutMs = 30_000

	// What an answer has in place of the random id of a share.
	maskedShareID = types.UID("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa")
)

type deviceRef struct {
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	ShareID string `json:"shareID"`

	Capacity map[resourceapi.QualifiedName]resource.Quantity `json:"capacity"`
}

func (d deviceRef) id() structured.DeviceID {
	return structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
}

type problem struct {
	ID        any                          `json:"id"`
	Channel   string                       `json:"channel"`
	Features  structured.Features          `json:"features"`
	Node      *v1.Node                     `json:"node"`
	Nodes     []*v1.Node                   `json:"nodes"`
	Classes   []*resourceapi.DeviceClass   `json:"classes"`
	Claims    []*resourceapi.ResourceClaim `json:"claims"`
	Slices    []*resourceapi.ResourceSlice `json:"slices"`
	Allocated struct {
		Devices            []deviceRef `json:"devices"`
		SharedDeviceIDs    []deviceRef `json:"sharedDeviceIDs"`
		AggregatedCapacity []deviceRef `json:"aggregatedCapacity"`
	} `json:"allocated"`
	TimeoutMs int `json:"timeoutMs"`
	Repeat    int `json:"repeat"`
}

type verdict struct {
	ID      any    `json:"id"`
	Channel string `json:"channel,omitempty"`
	Outcome string `json:"outcome"`
	Error   string `json:"error,omitempty"`
	PerNode bool   `json:"perNode,omitempty"`
	Node    string `json:"node,omitempty"` // the one of several that the answer is for

	Results []resourceapi.AllocationResult `json:"results,omitempty"`

	AllocateOneInvocations int64 `json:"allocateOneInvocations"`

	NewNs               int64 `json:"newNs"`
	AllocateNs          int64 `json:"allocateNs"`
	MinAllocateNs       int64 `json:"minAllocateNs,omitempty"`
	MinNewAndAllocateNs int64 `json:"minNewAndAllocateNs,omitempty"`
}

// classes is a lister without a server.
type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return c, nil
}

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

// answerProblems is the sub-command allocator.
func answerProblems(arguments []string) {
	flags := flag.NewFlagSet("allocator", flag.ExitOnError)
	timeout := flags.Duration("timeout", defaultTimeoutMs*time.Millisecond, "how long a problem may take that does not say so itself")
	parse(flags, arguments)
	answerLines(func(line []byte) any { return solve(line, *timeout) })
}

func solve(line []byte, timeout time.Duration) (said verdict) {
	var asked problem
	said.ID = json.RawMessage("null")
	if err := json.Unmarshal(line, &asked); err != nil {
		said.Outcome, said.Error = "bad-question", err.Error()
		return said
	}
	defer func() {
		if cause := recover(); cause != nil {
			said = verdict{ID: asked.ID, Channel: said.Channel, Outcome: "panic", Error: fmt.Sprint(cause)}
		}
	}()
	if asked.TimeoutMs > 0 {
		timeout = time.Duration(asked.TimeoutMs) * time.Millisecond
	}
	cache := dracel.NewCache(cachedPrograms, dracel.Features{
		EnableConsumableCapacity: asked.Features.ConsumableCapacity,
		EnableListTypeAttributes: asked.Features.ListTypeAttributes,
	})
	said = attempt(&asked, timeout, cache)
	for range asked.Repeat {
		again := attempt(&asked, timeout, cache)
		if said.MinAllocateNs == 0 {
			said.MinAllocateNs, said.MinNewAndAllocateNs = said.AllocateNs, said.NewNs+said.AllocateNs
		}
		said.MinAllocateNs = min(said.MinAllocateNs, again.AllocateNs)
		said.MinNewAndAllocateNs = min(said.MinNewAndAllocateNs, again.NewNs+again.AllocateNs)
	}
	return said
}

// attempt solves with an allocator of its own, as the scheduler does for each pod; compiled expressions are kept from one to the next, as there.
func attempt(asked *problem, timeout time.Duration, cache *dracel.Cache) (said verdict) {
	said.ID, said.Channel = asked.ID, asked.Channel
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	state := asked.state()
	if asked.Channel == "" {
		structured.EnableAllocators()
	} else {
		structured.EnableAllocators(asked.Channel)
	}
	begin := time.Now()
	allocator, err := structured.NewAllocator(ctx, asked.Features, state, classes(asked.Classes), asked.Slices, cache)
	said.NewNs = time.Since(begin).Nanoseconds()
	if err != nil {
		said.Outcome, said.Error = "unsupported", err.Error()
		return said
	}
	said.Channel = inner(allocator, "Channel").String()
	begin = time.Now()
	said.try(ctx, allocator, asked)
	said.AllocateNs = time.Since(begin).Nanoseconds()
	said.AllocateOneInvocations = inner(allocator, "GetStats").FieldByName("NumAllocateOneInvocations").Int()
	mendResults(said.Results)
	return said
}

func (asked *problem) state() structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, each := range asked.Allocated.Devices {
		state.AllocatedDevices.Insert(each.id())
	}
	for _, each := range asked.Allocated.SharedDeviceIDs {
		var share *types.UID
		if each.ShareID != "" {
			share = (*types.UID)(&each.ShareID)
		}
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(each.id(), share))
	}
	for _, each := range asked.Allocated.AggregatedCapacity {
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(each.id(), each.Capacity))
	}
	return state
}

// try asks node after node, up to the first result or error.
func (said *verdict) try(ctx context.Context, allocator structured.Allocator, asked *problem) {
	nodes := asked.Nodes
	if len(nodes) == 0 {
		nodes = []*v1.Node{asked.Node}
	}
	said.Outcome = "none"
	for _, node := range nodes {
		results, err := allocator.Allocate(ctx, node, asked.Claims)
		if err == nil && results == nil {
			continue
		}
		if len(asked.Nodes) > 0 {
			said.Node = node.Name
		}
		switch {
		case err == nil:
			said.Outcome, said.Results = "results", results
		case errors.Is(err, context.DeadlineExceeded):
			said.Outcome, said.Error = "timeout", err.Error()
		default:
			said.Outcome, said.Error = "error", err.Error()
			said.PerNode = errors.Is(err, structured.ErrFailedAllocationOnNode)
		}
		return
	}
}

// inner calls a method of an allocator that its public interface leaves out.
func inner(allocator structured.Allocator, name string) reflect.Value {
	return reflect.ValueOf(allocator).MethodByName(name).Call(nil)[0]
}

// mendResults makes results comparable: share ids are random, and amounts must not change when they are printed.
func mendResults(results []resourceapi.AllocationResult) {
	for i := range results {
		devices := results[i].Devices.Results
		for j := range devices {
			if devices[j].ShareID != nil {
				masked := maskedShareID
				devices[j].ShareID = &masked
			}
			for name, amount := range devices[j].ConsumedCapacity {
				devices[j].ConsumedCapacity[name] = printable(amount)
			}
		}
	}
}

// printable is the same amount in a notation that upstream prints rightly: multiples of 10^21 lose their zeros in the usual one.
func printable(amount resource.Quantity) resource.Quantity {
	if printed, err := resource.ParseQuantity(amount.String()); err == nil && printed.Cmp(amount) == 0 {
		return amount
	}
	return *resource.NewDecimalQuantity(*amount.AsDec(), resource.DecimalExponent)
}
