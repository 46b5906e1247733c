;; Notes in its memory who was called, in which order: s the start section, i _initialize, a alloc, n init, b batch.
;; _start must not be called: it would note X. Emits the notes as the value of one record for each frame.
(module
  (import "wasmill_1" "emit" (func $emit (param i32 i32 i32)))
  (memory (export "memory") 8)
  (global $n (mut i32) (i32.const 0))
  (func $note (param $c i32)
    (i32.store8 (i32.add (i32.const 256) (global.get $n)) (local.get $c))
    (global.set $n (i32.add (global.get $n) (i32.const 1))))
  (func $start (call $note (i32.const 115)))
  (start $start)
  (func (export "_initialize") (call $note (i32.const 105)))
  (func (export "_start") (call $note (i32.const 88)))
  (func (export "wasmill_alloc") (param i32) (result i32)
    (call $note (i32.const 97))
    (i32.const 65536))
  (func (export "wasmill_init") (param i32 i32 i32) (result i32)
    (call $note (i32.const 110))
    (i32.const 0))
  (func (export "wasmill_batch") (param i32 i32) (result i32)
    (call $note (i32.const 98))
    (i32.store (i32.const 20) (i32.const -1))             ;; key null
    (i32.store (i32.const 24) (i32.const 256))            ;; value
    (i32.store (i32.const 28) (global.get $n))
    (i32.store (i32.const 48) (i32.const -1))             ;; no index
    (call $emit (i32.const 0) (i32.const 1) (i32.const 56))
    (i32.const 0)))
