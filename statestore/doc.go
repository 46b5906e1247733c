// Package statestore keeps the keyed state of a job: what its stages remember between batches.
//
// A Store has the state of sealed batches only. A batch that runs works on a Txn: for each stage and lane an overlay of
// what it has read and written, over the changes of sealed batches that are not applied yet, over a Backend. When its lanes
// are done the batch is summed up (Txn.Sum: sorted, digested), its changelog is made durable (Txn.Write), and, once it is
// published, it is sealed (Store.Seal): part of the state from then on, and applied to the backend in the background. After
// a crash the changelogs that the backend has not got are taken over again (Store.Load). There is no rollback: nothing
// that could be taken back ever reaches the backend.
//
// What a batch reads and changes is a function of the state before it, its times and its operations; never of what a cache
// holds, of what was applied, or of scheduling. The package must not know what a batch reads or where its output goes, and
// uses checkpoint/durable and nothing else of ours.
package statestore
