"""Modules of WebAssembly as text, which were written for the tests, and their assembler."""

from __future__ import annotations

import wasmtime

COUNTER = """
(module
  (import "env" "storage_read" (func $read (param i64 i64 i64) (result i64)))
  (import "env" "read_register" (func $register (param i64 i64)))
  (import "env" "storage_write" (func $write (param i64 i64 i64 i64 i64) (result i64)))
  (import "env" "value_return" (func $return (param i64 i64)))
  (import "env" "log_utf8" (func $log (param i64 i64)))
  (memory 1)
  (data (i32.const 0) "count")
  (data (i32.const 16) "increased")
  (func $load
    (if (i64.eq (call $read (i64.const 5) (i64.const 0) (i64.const 1)) (i64.const 1))
      (then (call $register (i64.const 1) (i64.const 32)))))
  (func (export "increase")
    (call $load)
    (i64.store (i32.const 32) (i64.add (i64.load (i32.const 32)) (i64.const 1)))
    (drop (call $write (i64.const 5) (i64.const 0) (i64.const 8) (i64.const 32) (i64.const 2)))
    (call $log (i64.const 9) (i64.const 16)))
  (func (export "get") (call $load) (call $return (i64.const 8) (i64.const 32))))
"""
# Calls itself, with a callback, a yielded call, and the results of both.
CALLER = """
(module
  (import "env" "promise_create"
    (func $create (param i64 i64 i64 i64 i64 i64 i64 i64) (result i64)))
  (import "env" "promise_then"
    (func $then (param i64 i64 i64 i64 i64 i64 i64 i64 i64) (result i64)))
  (import "env" "promise_return" (func $return (param i64)))
  (import "env" "promise_yield_create"
    (func $yield (param i64 i64 i64 i64 i64 i64 i64) (result i64)))
  (import "env" "promise_results_count" (func $count (result i64)))
  (memory 1)
  (data (i32.const 0) "alice.near")
  (data (i32.const 16) "main")
  (func (export "main")
    (drop (call $yield (i64.const 4) (i64.const 16) (i64.const 0) (i64.const 0)
      (i64.const 1000000000000) (i64.const 1) (i64.const 1)))
    (call $return
      (call $then
        (call $create (i64.const 10) (i64.const 0) (i64.const 4) (i64.const 16)
          (i64.const 0) (i64.const 0) (i64.const 64) (i64.const 1000000000000))
        (i64.const 10) (i64.const 0) (i64.const 4) (i64.const 16)
        (i64.const 0) (i64.const 0) (i64.const 64) (i64.const 1000000000000)))))
"""
HOSTILE = {
    "endless loop": '(module (func (export "main") (loop $l (br $l))))',
    "deep recursion": '(module (func $f (export "main") (call $f)))',
    "wide recursion": (
        f'(module (func $f (export "main") (local {"i64 " * 2000}) (call $f) (call $f)))'
    ),
    "memory bomb": (
        '(module (memory 1) (func (export "main") '
        "(loop $l (drop (memory.grow (i32.const 16))) (br $l))))"
    ),
    "memory filled": (
        '(module (memory 1) (func (export "main") (drop (memory.grow (i32.const 1024))) '
        "(memory.fill (i32.const 0) (i32.const 7) (i32.const 134217728))))"
    ),
    "huge logs": (
        '(module (import "env" "log_utf8" (func $log (param i64 i64))) (memory 1) '
        '(func (export "main") (loop $l (call $log (i64.const 60000) (i64.const 0)) (br $l))))'
    ),
    "many logs": (
        '(module (import "env" "log_utf8" (func $log (param i64 i64))) (memory 1) '
        '(func (export "main") (loop $l (call $log (i64.const 1) (i64.const 0)) (br $l))))'
    ),
    "huge read": (
        '(module (import "env" "value_return" (func $f (param i64 i64))) (memory 1) '
        '(func (export "main") (call $f (i64.const -2) (i64.const 0))))'
    ),
    "huge registers": (
        '(module (import "env" "write_register" (func $f (param i64 i64 i64))) (memory 1) '
        '(func (export "main") (local i64) (loop $l (call $f (local.get 0) (i64.const 60000000) '
        "(i64.const 0)) (local.set 0 (i64.add (local.get 0) (i64.const 1))) (br $l))))"
    ),
    "many promises": (
        '(module (import "env" "promise_batch_create" (func $f (param i64 i64) (result i64))) '
        '(memory 1) (data (i32.const 0) "bob.near") (func (export "main") '
        "(loop $l (drop (call $f (i64.const 8) (i64.const 0))) (br $l))))"
    ),
    "unknown import": '(module (import "env" "nothing" (func)) (func (export "main")))',
    "many branches": (
        '(module (func (export "main") (block $b (br_table ' + "$b " * 60_000 + "(i32.const 5)))))"
    ),
    "deep blocks": ('(module (func (export "main") ' + "(block " * 5_000 + ")" * 5_000 + "))"),
    "large table": (
        '(module (table $t 10000 funcref) (func (export "main") '
        "(drop (table.grow $t (ref.null func) (i32.const 100000000)))))"
    ),
    "start loop": '(module (func $s (loop $l (br $l))) (start $s) (func (export "main")))',
}


def compiled(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(text))
