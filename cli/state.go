package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/checkpoint"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/pipeline"
	"github.com/wasmill/wasmill/statestore"
)

// Codes of what `wasmill state` does not find.
const (
	CodeNoTransform = "state.no_transform" // no such transform keeps state
	CodeNoTable     = "state.no_table"     // the transform has no such table
	CodeNoEntry     = "state.no_entry"     // nothing is kept under the key
)

func stateCommand(e *Env) *ucli.Command {
	const where = "Takes a checkpoint directory, or a job file that names one. The job may be running: what it has written down is then built into a " +
		"copy among the temporary files (TMPDIR), which takes as much room as the state, and goes back to its older snapshot."
	return &ucli.Command{
		Name:  "state",
		Usage: "look into what the stages of a job keep",
		Subcommands: []*ucli.Command{
			{
				Name: "ls", Usage: "list the transforms that keep state, their tables, and how much is in them", ArgsUsage: checkpointPlace,
				Description: where + "\nReads everything to count it.",
				Flags:       []ucli.Flag{batchFlag(), outputFlag()},
				Action:      e.tidy(e.stateList),
			},
			{
				Name: "get", Usage: "show what is kept under a key", ArgsUsage: "JOB.yaml|DIR TRANSFORM[.TABLE] KEY [SUB-PREFIX]",
				Description: where + "\nKEY is the key as keyBy makes it: of one JSON pointer the text that stands there, of several a JSON array such as " +
					"'[\"AA\",\"JFK\"]'. Without a table it shows all of them, and the key's timers. Exits with 1 when nothing is kept under the key.",
				Flags:  []ucli.Flag{batchFlag(), &ucli.BoolFlag{Name: "base64", Usage: "KEY and SUB-PREFIX are base64"}, outputFlag()},
				Action: e.tidy(e.stateGet),
			},
			{
				Name: "export", Usage: "write everything that is kept, one JSON object a line", ArgsUsage: checkpointPlace,
				Description: where + "\nValues of tables of type json are JSON, those of type i64 numbers, others texts; what is no text is base64, under the " +
					"names keyBase64, subBase64 and valueBase64. Timers have `timer` and `at` in place of `table` and `value`.",
				Flags: []ucli.Flag{
					batchFlag(),
					&ucli.StringFlag{Name: "transform", Usage: "only what the transform `NAME` keeps"},
					&ucli.StringFlag{Name: "table", Usage: "only the table `NAME` of that transform"},
				},
				Action: e.tidy(e.stateExport),
			},
		},
		Action: func(c *ucli.Context) error {
			if c.NArg() > 0 {
				return unknownCommand(c.Command.HelpName, c.Args().First(), c.Command.Subcommands)
			}
			return usagef(c, "name what to do: ls, get or export")
		},
	}
}

func batchFlag() ucli.Flag {
	return &ucli.Int64Flag{Name: "batch", Value: int64(checkpoint.NoBatch), DefaultText: "the newest", Usage: "the state as of the end of `BATCH`, as far back as batches are retained"}
}

// withState opens the state that an argument names, as of the batch that was asked for.
func (e *Env) withState(c *ucli.Context, args []string, do func(*pipeline.StateView) error) (err error) {
	if c.IsSet("batch") && c.Int64("batch") < 0 {
		return usagef(c, "--batch %d is not the number of a batch", c.Int64("batch"))
	}
	at, err := e.checkpointOf(c, args)
	if err != nil {
		return err
	}
	penv := e.pipelineEnv(c, nil, nil)
	penv.State.Rebuilt = func(_ int64, why error) {
		fmt.Fprintf(e.Stderr, "the state store was built anew: %s\n", printable(why.Error()))
	}
	penv.State.Warning = func(op string, err error) { fmt.Fprintf(e.Stderr, "%s: %s\n", op, printable(err.Error())) }
	s, err := pipeline.OpenState(c.Context, at.dir, penv)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	v, err := s.View(c.Context, checkpoint.BatchID(c.Int64("batch")))
	if err != nil {
		return err
	}
	defer v.Close()
	return do(v)
}

// stateShown is what `state ls` prints as JSON.
type stateShown struct {
	Batch      int64        `json:"batch"`
	Transforms []stageShown `json:"transforms"`
}

type stageShown struct {
	Name    string       `json:"name"`
	KeyBy   string       `json:"keyBy,omitempty"`
	Retired bool         `json:"retired,omitempty"` // no longer in the job: being deleted
	Tables  []tableShown `json:"tables"`
	Timers  int64        `json:"timers"`
}

type tableShown struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Retired bool   `json:"retired,omitempty"`
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"` // of keys and values
}

func (e *Env) stateList(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	shown := &stateShown{Transforms: []stageShown{}}
	err = e.withState(c, c.Args().Slice(), func(v *pipeline.StateView) error {
		shown.Batch = int64(v.Batch)
		for i := range v.Stages {
			s, err := countStage(c, v, &v.Stages[i])
			if err != nil {
				return err
			}
			if !s.Retired || len(s.Tables) > 0 || s.Timers > 0 {
				shown.Transforms = append(shown.Transforms, s)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case output == outputJSON:
		return e.printJSON(shown)
	}
	return shown.page().print(e.Stdout)
}

// countStage counts what a transform keeps. Tables that are no longer in the job, and empty, are left out.
func countStage(c *ucli.Context, v *pipeline.StateView, st *pipeline.StateStage) (stageShown, error) {
	s := stageShown{Name: st.Name, KeyBy: st.KeyBy, Retired: st.Retired, Tables: []tableShown{}}
	for i := range st.Tables {
		t := &st.Tables[i]
		entries, size, err := v.Count(c.Context, t)
		if err != nil {
			return s, err
		}
		if !t.Retired || entries > 0 {
			s.Tables = append(s.Tables, tableShown{t.Name, t.Type, t.Retired, entries, size})
		}
	}
	var err error
	s.Timers, _, err = v.Count(c.Context, &st.Timers)
	return s, err
}

func (s *stateShown) page() *page {
	p := &page{}
	if s.Batch < 0 {
		p.line("no batch is done yet")
		return p
	}
	p.line("as of the end of batch %d", s.Batch)
	p.line("")
	p.row("TRANSFORM", "TABLE", "TYPE", "ENTRIES", "BYTES", "")
	for _, st := range s.Transforms {
		for _, t := range st.Tables {
			note := ""
			if t.Retired {
				note = "no longer in the job: being deleted"
			}
			p.row(st.Name, t.Name, t.Type, thousands(t.Entries), thousands(t.Bytes), note)
		}
		if st.Timers > 0 || len(st.Tables) == 0 {
			p.row(st.Name, "(timers)", "", thousands(st.Timers), "", "")
		}
	}
	return p
}

func (e *Env) stateGet(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	args := c.Args().Slice()
	if len(args) < 3 || len(args) > 4 {
		return usagef(c, "a job file or checkpoint, a transform or TRANSFORM.TABLE, a key, and maybe the beginning of a sub-key: not %d arguments", len(args))
	}
	key, prefix, err := keyArgs(c, args[2:])
	if err != nil {
		return err
	}
	transform, table, _ := strings.Cut(args[1], ".")
	found := []*entryShown{}
	err = e.withState(c, args[:1], func(v *pipeline.StateView) error {
		tables, err := pickTables(v, transform, table)
		if err != nil {
			return err
		}
		for _, t := range tables {
			err := v.Under(c.Context, t.table, key, prefix, func(r *statestore.Row) error {
				found = append(found, showEntry(t, r))
				return nil
			})
			if err != nil {
				return err
			}
		}
		if len(found) == 0 {
			return fault.New(CodeNoEntry, args[1], fmt.Errorf("nothing is kept under the key %q as of batch %d", args[2], v.Batch),
				"`wasmill state export` shows the keys that there are; the key of several pointers is a JSON array")
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case output == outputJSON:
		return e.printJSON(found)
	}
	return entriesPage(found).print(e.Stdout)
}

func keyArgs(c *ucli.Context, args []string) (key, prefix []byte, err error) {
	parts := make([][]byte, 2)
	for i, a := range args {
		parts[i] = []byte(a)
		if !c.Bool("base64") {
			continue
		}
		if parts[i], err = base64Of(a); err != nil {
			return nil, nil, usagef(c, "%q is not base64", a)
		}
	}
	return parts[0], parts[1], nil
}

// pickedTable is a table of a transform.
type pickedTable struct {
	transform string
	table     *pipeline.StateTable
}

// pickTables finds the tables that names stand for: all with their timers when they are empty.
func pickTables(v *pipeline.StateView, transform, table string) ([]pickedTable, error) {
	var out []pickedTable
	var stages, tables []string
	for i := range v.Stages {
		st := &v.Stages[i]
		stages = append(stages, st.Name)
		if transform != "" && st.Name != transform {
			continue
		}
		for k := range st.Tables {
			tables = append(tables, st.Tables[k].Name)
			if table == "" || st.Tables[k].Name == table {
				out = append(out, pickedTable{st.Name, &st.Tables[k]})
			}
		}
		if table == "" {
			out = append(out, pickedTable{st.Name, &st.Timers})
		}
	}
	switch {
	case transform != "" && len(stages) == 0:
		return nil, fault.New(CodeNoTransform, "transform "+transform, errors.New("nothing keeps state yet"), "let a batch run first")
	case transform != "" && !slices.Contains(stages, transform):
		return nil, fault.New(CodeNoTransform, "transform "+transform, fmt.Errorf("it keeps no state as of batch %d%s", v.Batch, didYouMean(transform, stages, "")),
			"name one of: "+orNone(sortedText(stages)))
	case len(out) == 0 && table != "":
		return nil, fault.New(CodeNoTable, transform+"."+table, fmt.Errorf("the transform has no such table as of batch %d%s", v.Batch, didYouMean(table, tables, "")),
			"name one of: "+orNone(sortedText(tables)))
	}
	return out, nil
}

func (e *Env) stateExport(c *ucli.Context) error {
	transform, table := c.String("transform"), c.String("table")
	if table != "" && transform == "" {
		return usagef(c, "--table needs --transform: tables of several transforms may have one name")
	}
	return e.withState(c, c.Args().Slice(), func(v *pipeline.StateView) error {
		tables, err := pickTables(v, transform, table)
		if err != nil {
			return err
		}
		w := newEntryWriter(e.Stdout)
		for _, t := range tables {
			if err := v.Walk(c.Context, t.table, func(r *statestore.Row) error { return w.write(t, r) }); err != nil {
				return err
			}
		}
		return w.flush()
	})
}
