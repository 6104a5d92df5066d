//! Runs a recorded scenario in the simulated cluster and compares the result of every step.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kubestep_api::decode::{Decoded, Text, decode};
use kubestep_api::{Kind, Object};
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_debug::edit::EditError;
use kubestep_debug::trace::{PodStates, json};
use kubestep_debug::{Change, Session, StepOutcome};
use kubestep_framework::host::ExtenderCall;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::tie_break::TieBreak;
use serde::Deserialize;
use serde_json::Value;

use crate::compare::first_difference;
use crate::corpus::gates;
use crate::explained;
use crate::extender::{NodeLabels, Rule};
use crate::rendered;
use crate::scored;

/// What is recorded of a binding cycle that ended after its pod had waited.
const OF_BINDING: &[&str] = &["pod", "attempt", "preBind", "bind", "result", "message", "node"];
/// Categories in which only the states after the steps are recorded.
const STATES_ONLY: &[&str] = &["gang", "switches"];

/// A line of the corpus.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Scenario {
    #[serde(rename = "name")]
    _name: String,
    category: String,
    #[serde(rename = "kubeVersion")]
    _kube_version: Option<String>,
    #[serde(rename = "featureGates")]
    _feature_gates: Option<Value>,
    config: Option<Value>,
    #[serde(default)]
    extenders: Vec<Rule>,
    objects: Vec<Value>,
    steps: Vec<Step>,
    expect: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Step {
    Run(usize),
    Create(Vec<Value>),
    Update(Vec<Value>),
    Delete(Vec<Deleted>),
    Advance(f64),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    /// Only for custom kinds.
    #[serde(default)]
    api_version: String,
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
}

/// Compares one line; `tie_break` makes the choices that are random upstream.
pub fn compare(scenario: &Value, tie_break: TieBreak) -> Result<(), String> {
    let features = gates(scenario)?;
    let scenario = Scenario::deserialize(scenario).map_err(|error| error.to_string())?;
    let mut run = Run::new(&scenario, features)?;
    run.world.scheduler_mut().set_tie_break(tie_break);
    for object in &scenario.objects {
        run.create(object)?;
    }
    if scenario.steps.len() != scenario.expect.len() {
        return Err("as many steps as expectations are needed".to_owned());
    }
    for (number, (step, expected)) in scenario.steps.iter().zip(&scenario.expect).enumerate() {
        let cycles = run.step(step)?;
        let only_states = STATES_ONLY.contains(&scenario.category.as_str());
        let cycles = if only_states { Vec::new() } else { cycles };
        let mut got = run.state(step, &cycles);
        let finished = run.finished();
        if !only_states && !finished.is_empty() {
            got["finished"] = finished.into();
        }
        if let Some(difference) = first_difference(&format!("step {number}"), expected, &got) {
            return Err(difference);
        }
    }
    Ok(())
}

/// Runs one line and compares the answers of "why" with the results of its cycles.
pub fn explain(scenario: &Value) -> Result<(), String> {
    let features = gates(scenario)?;
    let scenario = Scenario::deserialize(scenario).map_err(|error| error.to_string())?;
    let mut run = Run::new(&scenario, features)?;
    for object in &scenario.objects {
        run.create(object)?;
    }
    for step in &scenario.steps {
        let Step::Run(cycles) = step else {
            run.step(step)?;
            continue;
        };
        for _ in 0..*cycles {
            let before = run.world.clone();
            let Some(record) = run.world.step() else { break };
            explained::compare(&before, &record)?;
            rendered::compare(&before, &record)?;
            scored::compare(&before, &record)?;
        }
    }
    Ok(())
}

/// Runs one line under other gates, as a session.
pub fn played(scenario: &Value, features: FeatureGates) -> Result<Session, String> {
    let scenario = Scenario::deserialize(scenario).map_err(|error| error.to_string())?;
    let mut run = Run::new(&scenario, features)?;
    for object in &scenario.objects {
        run.create(object)?;
    }
    let Run { world, labels } = run;
    let mut session = Session::new(world);
    for step in scenario.steps {
        match step {
            // A session's own run ends at a livelock.
            Step::Run(cycles) => {
                let _ = (0..cycles)
                    .take_while(|_| session.run_cycle() == StepOutcome::NewCycle)
                    .count();
            }
            step => {
                let change = ScenarioStep { step, labels: labels.clone() };
                session.change(Arc::new(change)).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(session)
}

/// A step that is no run, as an input of a session.
struct ScenarioStep {
    step: Step,
    labels: Arc<Mutex<NodeLabels>>,
}

impl fmt::Debug for ScenarioStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step of the scenario")
    }
}

impl Change for ScenarioStep {
    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        let mut run = Run { world: world.clone(), labels: self.labels.clone() };
        run.step(&self.step).map_err(EditError)?;
        *world = run.world;
        Ok(())
    }
}

struct Run {
    world: World,
    labels: Arc<Mutex<NodeLabels>>,
}

impl Run {
    fn new(scenario: &Scenario, features: FeatureGates) -> Result<Run, String> {
        let registry = kubestep_scheduler_plugins::add_to(kubestep_plugins::registry());
        let plugins = registry.descriptors();
        let document = scenario.config.as_ref().map(Value::to_string);
        // The recorder did not validate: some documents name a managed resource twice.
        let config = config::load_unvalidated(document.as_deref(), &features, &plugins)
            .and_then(|loaded| config::build(loaded.document, &features, &plugins))
            .map_err(|error| error.to_string())?;
        let mut world =
            World::new(&config, features, &registry).map_err(|error| error.to_string())?;
        world.api_mut().set_status_patches_count(false);
        let labels = Arc::new(Mutex::new(NodeLabels::new()));
        let urls = config.extenders.iter().map(|extender| extender.url_prefix.to_string());
        let answer = answerer(urls.collect(), scenario.extenders.clone(), labels.clone());
        world.api_mut().set_extenders(answer);
        Ok(Run { world, labels })
    }

    fn step(&mut self, step: &Step) -> Result<Vec<Arc<CycleRecord>>, String> {
        match step {
            Step::Run(cycles) => return Ok(self.world.run(*cycles)),
            Step::Create(objects) => objects.iter().try_for_each(|object| self.create(object))?,
            Step::Update(objects) => {
                for object in objects {
                    self.note_labels(object);
                    if let Some(object) = read(object)? {
                        self.world.update(object);
                    }
                }
            }
            Step::Delete(keys) => {
                for key in keys {
                    let kind = Kind::of(&key.api_version, &key.kind).ok_or("an unknown kind")?;
                    let name = NamespacedName::new((&*key.namespace).into(), (&*key.name).into());
                    self.world.delete(kind, name);
                }
            }
            Step::Advance(seconds) => self.world.advance((seconds * 1e6).round() as i64),
        }
        Ok(Vec::new())
    }

    fn create(&mut self, object: &Value) -> Result<(), String> {
        self.note_labels(object);
        if let Some(object) = read(object)? {
            self.world.create(object);
        }
        Ok(())
    }

    fn note_labels(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if object["kind"] == "Node" {
            let labels = BTreeMap::deserialize(&object["metadata"]["labels"]).unwrap_or_default();
            let mut all = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(name.to_owned(), labels);
        }
    }

    /// The binding cycles that ended in this step after their pods had waited, by pod.
    fn finished(&mut self) -> Vec<Value> {
        let mut finished = self.world.scheduler_mut().take_finished();
        finished.sort_by_key(|record| (record.pod.to_string(), record.attempt));
        let of_binding = |record: &CycleRecord| {
            let mut record = json::cycle(record);
            if let Some(fields) = record.as_object_mut() {
                fields.retain(|name, _| OF_BINDING.contains(&name.as_str()));
            }
            record
        };
        finished.iter().map(of_binding).collect()
    }

    /// The state after a step, in the format of the corpus.
    fn state(&mut self, step: &Step, cycles: &[Arc<CycleRecord>]) -> Value {
        let mut deleted = self.world.api_mut().take_deleted_pods();
        if let Step::Delete(_) = step {
            // Only the scheduler's own deletions are recorded.
            deleted.clear();
        }
        let queue = self.world.scheduler().queue();
        let mut state = json::state(&PodStates::new(queue, self.world.api().objects(), deleted));
        if !cycles.is_empty() {
            state["cycles"] = cycles.iter().map(|record| json::cycle(record)).collect();
        }
        state
    }
}

fn read(object: &Value) -> Result<Option<Object>, String> {
    match decode(Text::Json(&object.to_string()), None) {
        Ok(Decoded::Object(object)) => Ok(Some(object)),
        Ok(Decoded::Unread(_)) => Ok(None),
        Err(error) => Err(format!("{error}: {object}")),
    }
}

type Answer = Arc<
    dyn Fn(&ExtenderCall, &kubestep_framework::objects::Objects) -> Result<Value, String>
        + Send
        + Sync,
>;

/// Rule i answers at `http://extender/i/VERB`.
fn answerer(urls: Vec<String>, rules: Vec<Rule>, labels: Arc<Mutex<NodeLabels>>) -> Answer {
    Arc::new(move |call, _| {
        let url = urls.get(call.extender).ok_or("no such extender")?;
        let index = url.rsplit('/').next().and_then(|index| index.parse::<usize>().ok());
        let rule = index.and_then(|index| rules.get(index)).ok_or("no such rule")?;
        let labels = labels.lock().unwrap_or_else(PoisonError::into_inner);
        let verb = call.verb.as_str();
        rule.answer(verb, &call.body, &labels)
            .map_err(|code| format!("failed {verb} with extender at URL {url}/{verb}, code {code}"))
    })
}
