package job

import (
	_ "embed"
	"slices"
)

//go:embed template.yaml
var template []byte

// SchemaFile is the name that the template expects the JSON schema under, beside the job file.
const SchemaFile = "job.schema.json"

// Template returns a job file to start from. It runs as it stands.
func Template() []byte { return slices.Clone(template) }
