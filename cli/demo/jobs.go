package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmill/wasmill/transforms"
)

// The jobs, in the order of the data, and what they read and write.
const (
	jobOrders  = "orders"
	jobConvert = "convert"
	jobLake    = "lake"

	topicOrders    = "orders"
	topicConverted = "converted"
	tableFolder    = "lake"
	checkpoints    = "checkpoints"
	partitions     = 4
)

// jobs is their order.
var jobs = []string{jobOrders, jobConvert, jobLake}

// live and drain are how a job's two files are triggered: they are the same otherwise.
var live = map[string]string{
	jobOrders:  "{interval: 100ms}",
	jobConvert: "{interval: 0s}     # back to back",
	jobLake:    "{interval: 500ms}",
}

const drain = "{availableNow: true} # reads what there is, and ends"

const jobHead = `# Made by wasmill demo: %s.
apiVersion: wasmill/v1
kind: Job
metadata: {name: %s}
spec:
  checkpoint: ./%s/%s
  trigger: %s
`

const jobConnection = `  connections:
    demo: {kafka: {brokers: ["${env:KAFKA_BROKERS:-%s}"]}}
`

// jobBodies are the rest of the job files.
var jobBodies = map[string]string{
	jobOrders: `  sources:
    - name: generator
      generator: {kind: orders, seed: %d, rate: %d, records: %d}
  sinks:
    - name: topic
      from: [generator]
      kafka: {connection: demo, topic: ` + topicOrders + `}
`,
	jobConvert: `  sources:
    - name: orders
      kafka: {connection: demo, topics: [` + topicOrders + `]}
  transforms:
    - {name: convert, from: [orders], module: ./convert.wasm}
  sinks:
    - name: topic
      from: [convert]
      kafka: {connection: demo, topic: ` + topicConverted + `}
`,
	jobLake: `  sources:
    - name: converted
      kafka: {connection: demo, topics: [` + topicConverted + `]}
  sinks:
    - name: lake
      from: [converted]
      files:
        path: ./` + tableFolder + `
        format: parquet
        schema: {order_id: int64, customer: string, amount: "decimal(12,2)", currency: string, status: string, created_at: timestamp, amount_eur: "decimal(12,2)"}
`,
}

// jobWords say what a job does.
var jobWords = map[string]string{
	jobOrders:  "makes orders up and publishes them to topic " + topicOrders,
	jobConvert: "drops cancelled orders and adds amount_eur, by a transform, from topic " + topicOrders + " to topic " + topicConverted,
	jobLake:    "writes topic " + topicConverted + " to a Parquet table",
}

// jobFile is the name of a job's file. The one that drains ends by itself.
func jobFile(job string, draining bool) string {
	if draining {
		return job + ".drain.yaml"
	}
	return job + ".yaml"
}

// jobText is a job file.
func jobText(job string, draining bool, broker string, c Config) string {
	trigger := live[job]
	if draining {
		trigger = drain
	}
	body := jobBodies[job]
	if job == jobOrders {
		body = fmt.Sprintf(body, c.Seed, c.Rate, c.Records)
	}
	return fmt.Sprintf(jobHead, jobWords[job], job, checkpoints, job, trigger) + fmt.Sprintf(jobConnection, broker) + body
}

// writeJobs writes what a user can run by hand as well.
func writeJobs(dir, broker string, c Config) error {
	for _, job := range jobs {
		for _, draining := range []bool{false, true} {
			name := filepath.Join(dir, jobFile(job, draining))
			if err := os.WriteFile(name, []byte(jobText(job, draining, broker, c)), 0o644); err != nil {
				return folderFault(name, err)
			}
		}
	}
	module := filepath.Join(dir, "convert.wasm")
	if err := os.WriteFile(module, transforms.Convert, 0o644); err != nil {
		return folderFault(module, err)
	}
	readme := filepath.Join(dir, "README.md")
	if err := os.WriteFile(readme, []byte(byHand(broker)), 0o644); err != nil {
		return folderFault(readme, err)
	}
	return nil
}

// byHand says how to run the jobs without the demo.
func byHand(broker string) string {
	var b strings.Builder
	b.WriteString("# What `wasmill demo` made\n\n")
	for _, job := range jobs {
		fmt.Fprintf(&b, "- `%s` %s\n", jobFile(job, false), jobWords[job])
	}
	fmt.Fprintf(&b, "- `*.drain.yaml` are the same jobs, but end when everything is processed\n"+
		"- `%s/` is the table, `%s/` the jobs' progress, `*.log` what the engines said, `cache/` compiled code\n\n", tableFolder, checkpoints)
	fmt.Fprintf(&b, "While the demo runs, its broker is at %s: `wasmill plan convert.yaml`. Afterwards look at the table with any tool that\n"+
		"reads Parquet, and at the progress with `wasmill checkpoint show %s/%s`.\n\n", broker, checkpoints, jobConvert)
	fmt.Fprintf(&b, "By hand, with a broker of your own that has the topics `%s` and `%s`, and progress that begins anew:\n\n"+
		"    rm -r %s %s; export KAFKA_BROKERS=127.0.0.1:9092\n"+
		"    wasmill run orders.yaml &  wasmill run convert.yaml &  wasmill run lake.yaml\n", topicOrders, topicConverted, checkpoints, tableFolder)
	return b.String()
}
