use super::*;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::{Candidate, NodeNames, QueueName};

fn key(name: &str) -> NamespacedName {
    NamespacedName::new("shop".into(), name.into())
}

fn cycle(number: u64, name: &str, uid: &str) -> Entry {
    let pod = key(name);
    let uid = uid.into();
    Entry::Cycle(Arc::new(CycleRecord { cycle: number, pod, uid, ..CycleRecord::default() }))
}

fn moved(name: &str) -> Entry {
    let (from, to) = (QueueName::Active, QueueName::InFlight);
    let event = Symbol::new("Pop");
    let (time, pod) = (Time(5), key(name));
    Entry::Move(QueueMove { time, pod, from, to, event, plugin: None, order: None })
}

fn sample() -> History {
    let mut history = History::default();
    let entries = [
        moved("web"),
        cycle(1, "web", "a"),
        cycle(2, "db", "b"),
        moved("web"),
        cycle(3, "web", "a"),
        cycle(4, "web", "c"),
    ];
    for (at, entry) in entries.into_iter().enumerate() {
        assert_eq!(history.push(entry), EntryId(at as u32));
    }
    history
}

fn numbers<'a>(records: impl Iterator<Item = &'a Arc<CycleRecord>>) -> Vec<u64> {
    records.map(|record| record.cycle).collect()
}

#[test]
fn cycles_are_found_by_number_and_by_pod() {
    let history = sample();
    assert_eq!(history.entry_of_cycle(3), Some(EntryId(4)));
    assert_eq!(history.cycle(2).map(|record| record.pod), Some(key("db")));
    assert!(history.cycle(0).is_none() && history.cycle(5).is_none());
    assert_eq!(numbers(history.cycles_of(key("web"))), [1, 3, 4]);
    assert_eq!(history.of_pod(key("web")).map(|(id, _)| id.0).collect::<Vec<_>>(), [0, 1, 3, 4, 5]);
    assert_eq!(history.of_pod(key("none")).count(), 0);
}

#[test]
fn attempts_stay_with_one_pod_of_a_name() {
    let history = sample();
    let of = |number| history.cycle(number).unwrap();
    assert_eq!(numbers(history.next_attempt(of(1)).into_iter()), [3]);
    assert_eq!(numbers(history.previous_attempt(of(3)).into_iter()), [1]);
    assert!(history.next_attempt(of(3)).is_none(), "cycle 4 is another pod of that name");
    assert!(history.previous_attempt(of(4)).is_none());
}

#[test]
fn a_cycle_is_put_in_its_place_or_at_the_end() {
    let mut history = sample();
    for number in [2, 5] {
        let Entry::Cycle(record) = cycle(number, "db", "b") else { continue };
        history.put_cycle(Arc::new(CycleRecord { attempt: 7, ..record.as_ref().clone() }));
    }
    assert_eq!(history.cycle(2).map(|record| record.attempt), Some(7));
    assert_eq!(history.entry_of_cycle(2), Some(EntryId(2)));
    assert_eq!(numbers(history.cycles_of(key("db"))), [2, 5]);
}

#[test]
fn going_back_forgets_what_came_after() {
    let mut history = sample();
    history.truncate(3);
    assert_eq!((history.len(), numbers(history.cycles())), (3, vec![1, 2]));
    assert_eq!(numbers(history.cycles_of(key("web"))), [1]);
    assert_eq!(history.push(cycle(3, "web", "a")), EntryId(3));
    assert_eq!(history.last_cycle().map(|record| record.cycle), Some(3));
    assert_eq!(history.get(EntryId(0)).map(|entry| entry.time()), Some(Time(5)));
}

#[test]
fn what_was_cut_off_counts_until_it_is_dropped_bit_by_bit() {
    let mut history = History::default();
    let whole = |number| {
        let victims = vec![key("victim"); 100];
        let of = Candidate { node: "a".into(), victims, pdb_violations: 0, reasons: Vec::new() };
        let record = CycleRecord { cycle: number, candidates: vec![of], ..Default::default() };
        Entry::Cycle(Arc::new(record))
    };
    for number in 1..=100 {
        history.push(whole(number));
    }
    let bytes = history.matrix_bytes();
    history.truncate(50);
    let branch = history.clone();
    assert_eq!((history.matrix_bytes(), history.whole.len()), (bytes, 50));
    history.push(whole(51));
    assert_eq!(history.matrix_bytes(), bytes / 100 * (50 + 50 - LEAVING + 1));
    assert_eq!(branch.matrix_bytes(), bytes, "a branch counts on its own");
    // Before records of the branch itself, those go that are no part of it any more.
    history.set_budget(Some(bytes / 100 * 60 + history.entry_bytes()));
    assert!(history.leaving.len() <= 9 && history.cycles().all(|cycle| cycle.is_whole()));
    history.keep_least();
    assert!(history.leaving.is_empty());
    assert_eq!(history.matrix_bytes(), bytes / 100 * WHOLE);
}

#[test]
fn what_was_replaced_is_known_from_any_moment_on() {
    let mut history = sample();
    let put = |history: &mut History, number: u64| {
        let Entry::Cycle(record) = cycle(number, "web", "a") else { panic!("no other case") };
        history.put_cycle(record);
    };
    let start = history.replaced();
    put(&mut history, 3);
    let later = history.replaced();
    put(&mut history, 1);
    put(&mut history, 5);
    assert_eq!(history.replaced_since(start), Some(&[2, 0][..]));
    assert_eq!(history.replaced_since(later), Some(&[0][..]));
    assert_eq!(history.replaced_since(history.replaced()), Some(&[][..]));
    assert_eq!(numbers(history.cycles_from(3)), [4, 5]);
    for _ in 0..2 * REPLACED {
        put(&mut history, 2);
        assert!(history.replaced.len() <= REPLACED);
    }
    assert_eq!(history.replaced_since(later), None, "that is too long ago");
    let before = history.replaced();
    history.truncate(3);
    assert_eq!(history.replaced_since(before), None, "cycles were cut off");
    assert_eq!(history.replaced_since(history.replaced()), Some(&[][..]));
}

#[test]
fn records_of_many_nodes_count_though_they_share_everything() {
    let nodes = Arc::new(NodeNames { order: vec![NodeId(0); 1_000], names: Vec::new() });
    let record = |cycle| CycleRecord { cycle, nodes: nodes.clone(), ..CycleRecord::default() };
    let mut history = History::default();
    (1..=100).for_each(|number| _ = history.push(Entry::Cycle(Arc::new(record(number)))));
    history.set_budget(Some(history.entry_bytes() + 50 * 1_000 * NODE_BYTES));
    let whole = |history: &History| history.cycles().filter(|cycle| cycle.is_whole()).count();
    assert_eq!((history.matrix_bytes(), whole(&history)), (0, 50));
    history.truncate(60);
    history.set_budget(Some(history.entry_bytes() + 30 * 1_000 * NODE_BYTES));
    assert_eq!(
        (history.leaving.len(), whole(&history)),
        (20, 10),
        "cut-off ones count until they go"
    );
}
