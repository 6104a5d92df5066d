;; Score: ten times the digit at the end of the node's name. NormalizeScore: turns two nodes around.
(module
  (import "k8s.io/scheduler" "currentNodeName" (func $node_name (param i32 i32) (result i32)))
  (import "k8s.io/scheduler" "nodeScoreList" (func $scores (param i32 i32) (result i32)))
  (import "k8s.io/scheduler" "result.normalized_score_list" (func $normalized (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"n1\":20,\"n2\":10}")
  (data (i32.const 50) "{\"n1\":10,\"n2\":20}")
  (func (export "score") (result i64)
    (local $end i32)
    (local.set $end (i32.add (i32.const 99) (call $node_name (i32.const 100) (i32.const 100))))
    (i64.shl
      (i64.mul
        (i64.const 10)
        (i64.sub (i64.load8_u (local.get $end)) (i64.const 48)))
      (i64.const 32)))
  (func (export "normalizescore") (result i32)
    (local $length i32) (local $at i32)
    (local.set $length (call $scores (i32.const 100) (i32.const 100)))
    ;; What it gets has to be what Score returned.
    (loop $next
      (if (i32.ne
            (i32.load8_u (i32.add (i32.const 50) (local.get $at)))
            (i32.load8_u (i32.add (i32.const 100) (local.get $at))))
        (then (return (i32.const 1))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $length))))
    (call $normalized (i32.const 0) (i32.const 17))
    (i32.const 0)))
