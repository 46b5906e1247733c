;; Leaves in init what a copy of memory and globals cannot hold: a table entry set, an element and a data segment dropped, a
;; v128 and a funcref global. Every instance must see it: emits "ok" if all of it is there, else "lost".
(module
  (import "wasmill_1" "emit" (func $emit (param i32 i32 i32)))
  (memory (export "memory") 8)
  (table $t 2 4 funcref)
  (type $f (func (result i32)))
  (elem $e func $seven $nine)
  (data $d "gone")
  (data (i32.const 256) "lostok")
  (global $v (mut v128) (v128.const i64x2 0 0))
  (global $r (mut funcref) (ref.null func))
  (global $grown (mut i32) (i32.const 0))
  (func $seven (result i32) (i32.const 7))
  (func $nine (result i32) (i32.const 9))
  (func (export "wasmill_alloc") (param i32) (result i32) (i32.const 65536))
  (func (export "wasmill_init") (param i32 i32 i32) (result i32)
    (table.init $t $e (i32.const 0) (i32.const 0) (i32.const 2))
    (global.set $grown (table.grow $t (ref.func $seven) (i32.const 1)))
    (elem.drop $e)
    (data.drop $d)
    (global.set $v (v128.const i64x2 5 6))
    (global.set $r (ref.func $nine))
    (i32.const 0))
  (func $whole (result i32)
    (table.set $t (i32.const 0) (global.get $r))
    (i32.eq
      (i32.const 36)                                        ;; 9 + 9 + 7 + 3 entries + 2 + 6
      (i32.add
        (i32.add (call_indirect (type $f) (i32.const 0)) (call_indirect (type $f) (i32.const 1)))
        (i32.add
          (i32.add (call_indirect (type $f) (i32.const 2)) (table.size $t))
          (i32.add (global.get $grown) (i32.wrap_i64 (i64x2.extract_lane 1 (global.get $v))))))))
  (func (export "wasmill_batch") (param i32 i32) (result i32)
    (local $whole i32)
    (local.set $whole (call $whole))
    (memory.init $d (i32.const 0) (i32.const 0) (i32.const 0)) ;; length 0 of a dropped segment is no trap
    (i32.store (i32.const 20) (i32.const -1))
    (i32.store (i32.const 24) (select (i32.const 260) (i32.const 256) (local.get $whole)))
    (i32.store (i32.const 28) (select (i32.const 2) (i32.const 4) (local.get $whole)))
    (i32.store (i32.const 48) (i32.const -1))
    (call $emit (i32.const 0) (i32.const 1) (i32.const 56))
    (i32.const 0)))
