;; What ends a guest: its configuration says how Filter stops.
(module
  (import "k8s.io/scheduler" "get_config" (func $config (param i32 i32) (result i32)))
  (import "k8s.io/api" "nodeList" (func $nodes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write"
    (func $print (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\10\00\00\00\0d\00\00\00")
  (data (i32.const 16) "panic: no GPU")
  (func $forever (loop $again (br $again)))
  (func $ask (loop $again (drop (call $nodes (i32.const 0) (i32.const 0))) (br $again)))
  (func $eat (loop $again (drop (memory.grow (i32.const 100))) (br $again)))
  (func $deep (call $deep))
  (func (export "filter") (result i32)
    (local $how i32)
    (drop (call $config (i32.const 100) (i32.const 100)))
    (local.set $how (i32.load8_u (i32.const 100)))
    (if (i32.eq (local.get $how) (i32.const 0x70)) ;; p
      (then
        (drop (call $print (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 40)))
        unreachable))
    (if (i32.eq (local.get $how) (i32.const 0x6c)) (then (call $forever))) ;; l
    (if (i32.eq (local.get $how) (i32.const 0x61)) (then (call $ask))) ;; a
    (if (i32.eq (local.get $how) (i32.const 0x6d)) (then (call $eat))) ;; m
    (if (i32.eq (local.get $how) (i32.const 0x64)) (then (call $deep))) ;; d
    (if (i32.eq (local.get $how) (i32.const 0x78)) (then (call $exit (i32.const 3)))) ;; x
    (if (i32.eq (local.get $how) (i32.const 0x75)) ;; u: an unknown function of WASI fails
      (then
        (return (i32.eq
          (call $poll (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
          (i32.const 0)))))
    (if (i32.eq (local.get $how) (i32.const 0x6f)) ;; o: outside its memory
      (then (drop (call $config (i32.const 65536) (i32.const 100)))))
    (i32.const 99)))
