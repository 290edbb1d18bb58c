// Command oracle answers questions with upstream's own code: JSON lines in, JSON lines out.
//
// `oracle cel` answers about CEL expressions, `oracle allocator` about whole allocations. Only what k8s.io/dynamic-resource-allocation
// exports is used; tests/oracle/README.md documents the fields.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

var commands = map[string]func(arguments []string){"allocator": answerProblems, "cel": answerSelectors}

func main() {
	if len(os.Args) > 1 {
		if command, found := commands[os.Args[1]]; found {
			command(os.Args[2:])
			return
		}
	}
	fail(fmt.Errorf("usage: %s cel|allocator [flags]", os.Args[0]))
}

func parse(flags *flag.FlagSet, arguments []string) {
	if err := flags.Parse(arguments); err != nil { // exits by itself
		fail(err)
	}
	if flags.NArg() > 0 {
		fail(fmt.Errorf("unexpected arguments: %q", flags.Args()))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// answerLines writes one line for each line read; the answer is there as soon as no more questions wait.
func answerLines(reply func(line []byte) any) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if failed := encoder.Encode(reply(line)); failed != nil {
				fail(failed)
			}
		}
		if err != nil {
			return
		}
		if in.Buffered() == 0 { // the asker waits
			out.Flush()
		}
	}
}
