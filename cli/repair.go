package cli

import (
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/wasmill/wasmill/checkpoint"
)

// repairChoices are the values of --choice.
var repairChoices = []string{
	string(checkpoint.MoveTorn), string(checkpoint.Forget), string(checkpoint.Rewind), string(checkpoint.RestoreMetadata),
	string(checkpoint.Rename), string(checkpoint.Clean),
}

func (e *Env) repairCommand(where string) *ucli.Command {
	return &ucli.Command{
		Name: "repair", Usage: "show what would mend a checkpoint, and do it with --yes", ArgsUsage: checkpointPlace,
		Description: where + "\nRecords are moved aside, never deleted. Exits with 3 when there is something to do and it was not done.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "choice", Usage: "one of those that verify offers: " + strings.Join(repairChoices, ", ")},
			&ucli.StringFlag{Name: "query-id", Usage: "for restore-metadata: the `UUID` that the targets know the job by"},
			&ucli.StringFlag{Name: "job", Usage: "for rename: the job's new `NAME`; default: that of the job file"},
			&ucli.BoolFlag{Name: "yes", Usage: "do it"},
			outputFlag(),
		},
		Action: func(c *ucli.Context) error { return e.repair(c) },
	}
}

// repairShown is what repair prints as JSON.
type repairShown struct {
	Offers []checkpoint.Offer  `json:"offers"`
	Repair *checkpoint.Repairs `json:"repair,omitempty"` // nil: there is nothing to do, or nothing that can be done with what was given
}

func (e *Env) repair(c *ucli.Context) error {
	output, err := outputOf(c)
	if err != nil {
		return err
	}
	choice := c.String("choice")
	if choice != "" && !slices.Contains(repairChoices, choice) {
		return usagef(c, "--choice %q: it is one of %s", choice, strings.Join(repairChoices, ", "))
	}
	at, err := e.checkpointOf(c, c.Args().Slice())
	if err != nil {
		return err
	}
	r, err := checkpoint.Verify(c.Context, e.Files, at.dir)
	if err != nil {
		return err
	}
	if choice == "" && c.Bool("yes") && len(r.Offers) > 1 {
		return usagef(c, "%d repairs fit: name one with --choice", len(r.Offers))
	}
	if choice == "" && len(r.Offers) > 0 {
		choice = string(r.Offers[0].Choice)
	}
	shown := &repairShown{Offers: append([]checkpoint.Offer{}, r.Offers...)}
	lacksID := choice == string(checkpoint.RestoreMetadata) && c.String("query-id") == "" && !c.Bool("yes")
	if choice != "" && !lacksID {
		job := c.String("job")
		if job == "" {
			job = at.job
		}
		shown.Repair, err = checkpoint.Repair(c.Context, e.Files, at.dir, checkpoint.RepairRequest{
			Choice: checkpoint.Choice(choice), ID: c.String("query-id"), Job: job, Apply: c.Bool("yes"),
			Options: e.checkpointOptions(c, job),
		})
		if err != nil {
			return err
		}
	}
	if output == outputJSON {
		err = e.printJSON(shown)
	} else {
		err = shown.page(at.dir, r).print(e.Stdout)
	}
	done := r.OK() && shown.Repair == nil || shown.Repair != nil && shown.Repair.Applied
	if err == nil && !done {
		return errFindings
	}
	return err
}

func (s *repairShown) page(dir string, r *checkpoint.Report) *page {
	p := &page{}
	switch {
	case s.Repair == nil && r.OK():
		p.line("%s: there is nothing to repair", dir)
		return p
	case s.Repair == nil && len(s.Offers) > 0:
		findingRows(p, r.Findings)
		p.line("")
		p.line("What fits:")
		offerRows(p, s.Offers)
		p.line("")
		p.line("Nothing was changed. See what it would do with --choice %s --query-id UUID, or with another choice.", checkpoint.RestoreMetadata)
		return p
	case s.Repair == nil:
		findingRows(p, r.Findings)
		p.line("No repair keeps the query id going; `wasmill checkpoint fork` goes on under a new one.")
		return p
	case s.Repair.Applied:
		p.line("%s: %s is done, and written down in %s", dir, s.Repair.Choice, s.Repair.Record)
	default:
		findingRows(p, r.Findings)
		p.line("")
		if len(s.Offers) > 0 {
			p.line("What fits:")
			offerRows(p, s.Offers)
			p.line("")
		}
		p.line("%s would:", s.Repair.Choice)
	}
	for _, step := range s.Repair.Steps {
		p.line("  %s", stepText(step))
	}
	if !s.Repair.Applied {
		p.line("Nothing was changed. Do it with --choice %s --yes, while no job runs on the checkpoint.", s.Repair.Choice)
	}
	return p
}

func stepText(s checkpoint.RepairStep) string {
	switch s.Do {
	case "move":
		return fmt.Sprintf("move %s to %s", s.File, s.To)
	case "write":
		return fmt.Sprintf("write %s: %s", s.File, strings.TrimSpace(s.Text))
	}
	return s.Do + " " + s.File
}
