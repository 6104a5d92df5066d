;; PreFilter forgets, Filter and AddPod count: the third call of Filter rejects its node. The number
;; is in a variable that the module does not export.
(module
  (memory (export "memory") 1)
  (global $asked (mut i32) (i32.const 7))
  (func (export "prefilter") (result i32)
    (global.set $asked (i32.const 0))
    (i32.const 0))
  (func (export "addpod") (result i32)
    (global.set $asked (i32.add (global.get $asked) (i32.const 1)))
    (i32.const 0))
  (func (export "filter") (result i32)
    (global.set $asked (i32.add (global.get $asked) (i32.const 1)))
    (i32.mul (i32.const 2) (i32.gt_u (global.get $asked) (i32.const 2)))))
