// Package pipeline brings a checked job to life: it compiles and starts the modules, opens the checkpoint, builds the
// sources and targets that the job names, and hands all of it to the engine.
//
// It is the one place that knows every driver. It holds no protocol: what a batch does is the engine's, and what a
// component does is the driver's.
package pipeline
