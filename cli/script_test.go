package cli_test

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/wasmill/wasmill/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"wasmill": func() { os.Exit(cli.Run(context.Background(), os.Args, cli.System())) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Values[runningKey{}] = map[string]*running{}
			env.Values[kafkasKey{}] = map[string]*fakeKafka{}
			return scriptSetup(env)
		},
		Condition: scriptCondition,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "start": start, "stop": stop, "shorten": shorten, "snapshot": snapshot, "mount": mount, "damage": damage,
			"kafka": kafka, "sql": queryFile,
		},
	})
}

// exits runs a command and demands its exit code: exits 3 wasmill validate.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; want != string(rune('0'+code)) {
		ts.Fatalf("%v exited with %d, want %s", args[1:], code, want)
	}
}
