//! A binary heap of queued pods with an index by key. It makes exactly the moves of Go's
//! `container/heap`, because they decide the order of pods of equal rank.
//!
//! Upstream: `pkg/scheduler/backend/heap/heap.go`.

use std::sync::Arc;

use hashbrown::HashMap;

use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};

/// Whether the first pod comes before the second.
pub(super) type Less<'a> = &'a dyn Fn(&QueuedPodInfo, &QueuedPodInfo) -> bool;

/// The heap. Every operation that moves elements takes the order, which must always be the same.
#[derive(Clone, Default)]
pub(super) struct Heap {
    elements: Vec<Element>,
    ids: HashMap<NamespacedName, u32>,
    /// By id: the position in `elements`. A pod that moves is not looked up by its key.
    positions: Vec<u32>,
    /// Ids that no pod has.
    free: Vec<u32>,
}

#[derive(Clone)]
struct Element {
    pod: Arc<QueuedPodInfo>,
    id: u32,
}

impl Heap {
    /// The pods, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<QueuedPodInfo>> {
        self.elements.iter().map(|element| &element.pod)
    }

    pub(super) fn len(&self) -> usize {
        self.elements.len()
    }

    fn position(&self, key: NamespacedName) -> Option<usize> {
        let id = *self.ids.get(&key)?;
        Some(self.positions[id as usize] as usize)
    }

    /// The pod with that key.
    pub(super) fn get(&self, key: NamespacedName) -> Option<&Arc<QueuedPodInfo>> {
        self.elements.get(self.position(key)?).map(|element| &element.pod)
    }

    /// Whether there is a pod with that key.
    pub(super) fn contains(&self, key: NamespacedName) -> bool {
        self.ids.contains_key(&key)
    }

    /// The pod that is popped next.
    pub(super) fn peek(&self) -> Option<&Arc<QueuedPodInfo>> {
        self.iter().next()
    }

    /// Adds a pod, or replaces the one with the same key and fixes its position.
    pub(super) fn add_or_update(&mut self, pod: Arc<QueuedPodInfo>, less: Less<'_>) {
        match self.position(pod.key()) {
            Some(at) => {
                self.elements[at].pod = pod;
                self.fix(at, less);
            }
            None => {
                let at = self.push(pod);
                self.up(at, less);
            }
        }
    }

    /// Adds a pod at the end and returns its position.
    fn push(&mut self, pod: Arc<QueuedPodInfo>) -> usize {
        let id = self.free.pop().unwrap_or_else(|| {
            self.positions.push(0);
            self.positions.len() as u32 - 1
        });
        let position = self.elements.len();
        self.positions[id as usize] = position as u32;
        self.ids.insert(pod.key(), id);
        self.elements.push(Element { pod, id });
        position
    }

    /// Pops the first pod.
    pub(super) fn pop(&mut self, less: Less<'_>) -> Option<Arc<QueuedPodInfo>> {
        let last = self.elements.len().checked_sub(1)?;
        self.swap(0, last);
        self.down(0, last, less);
        self.take_last()
    }

    /// Removes the pod with that key.
    pub(super) fn remove(
        &mut self,
        key: NamespacedName,
        less: Less<'_>,
    ) -> Option<Arc<QueuedPodInfo>> {
        let at = self.position(key)?;
        let last = self.elements.len() - 1;
        if at != last {
            self.swap(at, last);
            if !self.down(at, last, less) {
                self.up(at, less);
            }
        }
        self.take_last()
    }

    /// The pods in the order in which they would be popped, each looked for when it is asked for.
    pub(super) fn in_order<'a>(
        &'a self,
        less: Less<'_>,
    ) -> impl Iterator<Item = &'a QueuedPodInfo> {
        let mut rest: Vec<&QueuedPodInfo> = self.iter().map(Arc::as_ref).collect();
        std::iter::from_fn(move || {
            let last = rest.len().checked_sub(1)?;
            rest.swap(0, last);
            sift_down(
                0,
                last,
                &mut rest,
                |pods, i, j| less(pods[i], pods[j]),
                |pods, i, j| pods.swap(i, j),
            );
            rest.pop()
        })
    }

    fn take_last(&mut self) -> Option<Arc<QueuedPodInfo>> {
        let Element { pod, id } = self.elements.pop()?;
        self.ids.remove(&pod.key());
        self.free.push(id);
        Some(pod)
    }

    fn swap(&mut self, i: usize, j: usize) {
        self.elements.swap(i, j);
        for at in [i, j] {
            self.positions[self.elements[at].id as usize] = at as u32;
        }
    }

    fn fix(&mut self, at: usize, less: Less<'_>) {
        if !self.down(at, self.elements.len(), less) {
            self.up(at, less);
        }
    }

    fn up(&mut self, mut at: usize, less: Less<'_>) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !less(&self.elements[at].pod, &self.elements[parent].pod) {
                break;
            }
            self.swap(parent, at);
            at = parent;
        }
    }

    fn down(&mut self, start: usize, end: usize, less: Less<'_>) -> bool {
        let before =
            |heap: &Heap, i: usize, j: usize| less(&heap.elements[i].pod, &heap.elements[j].pod);
        sift_down(start, end, self, before, Heap::swap)
    }
}

/// Go's `down`: moves the element at `start` down within the first `end` elements. Returns whether
/// it moved.
fn sift_down<T>(
    start: usize,
    end: usize,
    heap: &mut T,
    before: impl Fn(&T, usize, usize) -> bool,
    mut swap: impl FnMut(&mut T, usize, usize),
) -> bool {
    let mut at = start;
    loop {
        let left = 2 * at + 1;
        if left >= end {
            break;
        }
        let right = left + 1;
        let child = if right < end && before(heap, right, left) { right } else { left };
        if !before(heap, child, at) {
            break;
        }
        swap(heap, at, child);
        at = child;
    }
    at > start
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::{Pod, Time};
    use kubestep_framework::pod::PodInfo;

    fn queued(name: &str, priority: i32) -> Arc<QueuedPodInfo> {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        pod.spec.priority = Some(priority);
        Arc::new(QueuedPodInfo::new(Arc::new(PodInfo::new(Arc::new(pod))), Time(0)))
    }

    fn higher_first(a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
        a.info.priority() > b.info.priority()
    }

    fn filled(pods: &[(&str, i32)]) -> Heap {
        let mut heap = Heap::default();
        for (name, priority) in pods {
            heap.add_or_update(queued(name, *priority), &higher_first);
        }
        heap
    }

    fn array(heap: &Heap) -> Vec<String> {
        heap.iter().map(|pod| pod.key().name.to_string()).collect()
    }

    fn drained(mut heap: Heap) -> Vec<String> {
        let pods = std::iter::from_fn(|| heap.pop(&higher_first));
        pods.map(|pod| pod.key().name.to_string()).collect()
    }

    /// Expected values derived from the rules of Go's `container/heap`.
    #[test]
    fn elements_move_as_in_go() {
        let heap = filled(&[("a", 1), ("b", 2), ("c", 3), ("d", 2), ("e", 4)]);
        assert_eq!(array(&heap), ["e", "c", "b", "a", "d"]);
        let mut smaller = heap.clone();
        let removed = smaller.remove(queued("c", 0).key(), &higher_first);
        assert_eq!(removed.map(|pod| pod.info.priority()), Some(3));
        assert_eq!(array(&smaller), ["e", "d", "b", "a"]);
        let mut popped = heap;
        popped.pop(&higher_first);
        assert_eq!(array(&popped), ["c", "d", "b", "a"]);
    }

    /// Among equals the heap's moves decide, not the order of arrival.
    #[test]
    fn equals_come_out_as_gos_heap_yields_them() {
        let heap = filled(&[("a", 0), ("b", 0), ("c", 0), ("d", 0), ("e", 0)]);
        assert_eq!(array(&heap), ["a", "b", "c", "d", "e"]);
        assert_eq!(drained(heap), ["a", "e", "d", "c", "b"]);
    }

    #[test]
    fn an_update_moves_the_element_either_way() {
        let mut heap = filled(&[("a", 5), ("b", 4), ("c", 3), ("d", 2)]);
        heap.add_or_update(queued("d", 9), &higher_first);
        assert_eq!(array(&heap), ["d", "a", "c", "b"]);
        heap.add_or_update(queued("d", 1), &higher_first);
        assert_eq!(array(&heap), ["a", "b", "c", "d"]);
        assert_eq!(heap.get(queued("d", 0).key()).map(|pod| pod.info.priority()), Some(1));
    }

    #[test]
    fn an_empty_heap_gives_nothing() {
        let mut heap = filled(&[("a", 1)]);
        assert!(heap.remove(queued("b", 1).key(), &higher_first).is_none());
        assert!(heap.remove(queued("a", 1).key(), &higher_first).is_some());
        assert!(heap.pop(&higher_first).is_none() && heap.peek().is_none());
        assert!(!heap.contains(queued("a", 1).key()) && heap.len() == 0);
    }
}
