// Package demo shows the whole of Wasmill on a bare machine: made-up orders go through a topic, a transform, another topic
// and into a Parquet table, while engines are killed in front of the user, and at the end a count of its own proves that
// nothing was lost or doubled.
//
// The demo's process owns an in-process broker (kfake, on the loopback interface, in memory) and the terminal. Each of the
// three jobs runs in a child process of the same program, which is what gets killed; the broker is not, as kfake's
// transactions do not survive that. Jobs, progress, table and logs lie in one folder. No child outlives the demo: on Linux
// the kernel ends it with its parent, elsewhere it ends when its standard input does.
//
// Pieces: show.go runs a demo, engine.go a child, broker.go the broker, jobs.go the files, kills.go says when to kill,
// onlooker.go and meter.go count what is committed, view.go draws, screen.go is the terminal. The proof is proof.go, with
// what must be there (ledger.go), what is (count.go) and where it is read (topics.go, table.go). It uses nothing of what it
// judges: it reads topics with another client and the table by Spark's rules, and knows what must be there from the
// generator alone.
//
// The package must not reach into the engine: what it knows of a job it reads from the job's progress, topics and files.
package demo
