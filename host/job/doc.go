// Package job is the job file: one YAML document that says what is read, which transforms run and where the output goes.
//
// Parse turns the text into a typed Job or into the list of everything that is wrong with it, each with its line, column
// and path. The components of a job file are described once, as data (see Describe); decoding, the JSON schema, the
// reference and the template all come from that table. Revision says which parts of a job determine its output.
//
// The package opens no source or sink, compiles no module and reads neither environment nor files by itself: both come in
// through Env. It holds no state. Interpolated values are used and never written into the revision.
package job
