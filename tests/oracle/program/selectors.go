package main

// CEL expressions, answered with what k8s.io/dynamic-resource-allocation/cel exports. One line asks about one expression and one or
// several devices.

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type question struct {
	ID         any              `json:"id"`
	Expression string           `json:"expression"`
	Env        environment.Type `json:"env"`
	Features   struct {
		ConsumableCapacity bool
		ListTypeAttributes bool
	} `json:"features"`
	Derived        bool             `json:"derived"`
	CostLimit      *uint64          `json:"costLimit"`
	SkipEstimation bool             `json:"skipEstimation"`
	Device         *dracel.Device   `json:"device"`
	Devices        []*dracel.Device `json:"devices"`
}

// evaluation is what upstream says about one device.
type evaluation struct {
	Outcome    string                       `json:"outcome"`
	Match      *bool                        `json:"match,omitempty"`
	Attribute  *resourceapi.DeviceAttribute `json:"attribute,omitempty"`
	Error      string                       `json:"error,omitempty"`
	ActualCost *uint64                      `json:"actualCost,omitempty"`
	Unstable   bool                         `json:"unstable,omitempty"` // repeated runs disagreed
}

type answer struct {
	ID any `json:"id"`
	evaluation
	OutputType  string       `json:"outputType,omitempty"`
	MaxCost     *uint64      `json:"maxCost,omitempty"`
	Results     []evaluation `json:"results,omitempty"`
	NsPerDevice float64      `json:"nsPerDevice,omitempty"`
}

// A compiler of upstream is of a type that has no exported name, and GetCompiler rebuilds it at each change of the features.
type compile func(string, dracel.Options) dracel.CompilationResult

var compilers = map[dracel.Features]compile{}

func compilerFor(features dracel.Features) compile {
	if compilers[features] == nil {
		compilers[features] = dracel.GetCompiler(features).CompileCELExpression
	}
	return compilers[features]
}

// answerSelectors is the sub-command cel.
func answerSelectors(arguments []string) {
	flags := flag.NewFlagSet("cel", flag.ExitOnError)
	repeat := flags.Int("repeat", 1, "evaluate each device so many times and say whether the runs disagree")
	bench := flags.Duration("bench", 0, "time the evaluation loop over the devices of each line for at least so long")
	compatible := flags.String("compatibility", "", "Kubernetes version that NewExpressions is compatible with, such as 1.33")
	parse(flags, arguments)
	if *compatible != "" {
		kube := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
		kube.(basecompatibility.MutableEffectiveVersion).SetMinCompatibilityVersion(version.MustParseGeneric(*compatible))
	}
	answerLines(func(line []byte) any { return reply(line, *repeat, *bench) })
}

func reply(line []byte, repeat int, bench time.Duration) (said answer) {
	asked := question{Env: environment.StoredExpressions}
	said.ID = json.RawMessage("null")
	if err := json.Unmarshal(line, &asked); err != nil {
		said.evaluation = evaluation{Outcome: "bad-question", Error: err.Error()}
		return said
	}
	said.ID = asked.ID
	defer func() {
		if cause := recover(); cause != nil {
			said.evaluation = evaluation{Outcome: "panic", Error: fmt.Sprint(cause)}
		}
	}()
	compiled := compilerFor(dracel.Features{
		EnableConsumableCapacity: asked.Features.ConsumableCapacity,
		EnableListTypeAttributes: asked.Features.ListTypeAttributes,
	})(asked.Expression, dracel.Options{
		EnvType: &asked.Env, CostLimit: asked.CostLimit, DerivedAttribute: asked.Derived, DisableCostEstimation: asked.SkipEstimation,
	})
	if compiled.Error != nil {
		said.evaluation = evaluation{Outcome: "compile-error", Error: compiled.Error.Detail}
		return said
	}
	said.OutputType, said.MaxCost = compiled.OutputType.String(), &compiled.MaxCost
	said.evaluation = evaluation{Outcome: "ok"}
	if asked.Device != nil {
		said.evaluation = often(compiled, asked.Derived, asked.Device, repeat)
	}
	for _, each := range asked.Devices {
		said.Results = append(said.Results, often(compiled, asked.Derived, each, repeat))
	}
	if bench > 0 && len(asked.Devices) > 0 {
		said.NsPerDevice = timed(compiled, asked.Devices, bench)
	}
	return said
}

func often(compiled dracel.CompilationResult, derived bool, of *dracel.Device, repeat int) evaluation {
	first := evaluate(compiled, derived, of)
	for range repeat - 1 {
		if !reflect.DeepEqual(evaluate(compiled, derived, of), first) {
			first.Unstable = true
			break
		}
	}
	return first
}

func evaluate(compiled dracel.CompilationResult, derived bool, of *dracel.Device) (said evaluation) {
	defer func() {
		if cause := recover(); cause != nil {
			said = evaluation{Outcome: "panic", Error: fmt.Sprint(cause)}
		}
	}()
	said.Outcome = "ok"
	note := func(details interface{ ActualCost() *uint64 }, present bool, err error) {
		if present {
			said.ActualCost = details.ActualCost()
		}
		if err != nil {
			said = evaluation{Outcome: "runtime-error", Error: err.Error(), ActualCost: said.ActualCost}
		}
	}
	if derived {
		attribute, details, err := compiled.EvaluateDerivedAttribute(context.Background(), *of)
		said.Attribute = attribute
		note(details, details != nil, err)
		return said
	}
	match, details, err := compiled.DeviceMatches(context.Background(), *of)
	said.Match = &match
	note(details, details != nil, err)
	return said
}

// timed is the least time per device over at least five rounds through all devices: upstream's DeviceMatches, conversion of the device included.
func timed(compiled dracel.CompilationResult, devices []*dracel.Device, atLeast time.Duration) float64 {
	best := time.Duration(1<<63 - 1)
	ctx := context.Background()
	for started, round := time.Now(), 0; round < 5 || time.Since(started) < atLeast; round++ {
		begin := time.Now()
		for _, each := range devices {
			_, _, _ = compiled.DeviceMatches(ctx, *each)
		}
		best = min(best, time.Since(begin))
	}
	return float64(best.Nanoseconds()) / float64(len(devices))
}
