// Package registry is the client of a schema registry (Confluent's API, as Karapace, Redpanda and Apicurio serve it too) and
// the memory of what it has said.
//
// A Client asks; a Store keeps. A schema id never changes its meaning, so what an id stands for is asked once and kept for
// good, with all that it refers to, in files of the checkpoint: a batch that is replayed reads by the same schemas when the
// registry is down, or has been wiped. In each process an id that comes from a file is asked for once more, if the registry
// answers: when it says something else, the registry is not the one it was, and going on would read records by schemas that
// they were not written with. An id that the registry does not know is not kept beyond a few seconds.
//
// Errors: unknown ids wrap confluent.ErrUnknown. A registry that cannot be reached, is too slow, or answers with a failure of
// its own is a passing fault; one that does not let us in, or answers nonsense, is a fault that somebody has to mend. None of
// them says anything about a record.
//
// The package knows no records, topics or batches.
package registry
