//! The operations of a workload, by their opcode. Fields are upstream's.

use std::collections::BTreeMap;
use std::fmt;

use kubestep_api::Duration;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::parameters::Parameters;

macro_rules! operations {
    ($($(#[$doc:meta])* $opcode:literal $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    })*) => {
        $($(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct $name {
            #[allow(missing_docs)]
            opcode: de::IgnoredAny,
            $($(#[$field_doc])* pub $field: $type,)*
        })*

        /// An operation of a workload, one for each opcode of scheduler_perf.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Operation { $($name($name),)* }

        /// The opcodes that are understood.
        pub(crate) const OPCODES: &[&str] = &[$($opcode,)*];

        impl Operation {
            /// The opcode, as in the file: `createPods`.
            pub fn opcode(&self) -> &'static str {
                match self { $(Operation::$name(_) => $opcode,)* }
            }

            fn of(opcode: &str, fields: Value) -> Result<Operation, String> {
                match opcode {
                    $($opcode => {
                        let read = serde_json::from_value(fields).map(Operation::$name);
                        read.map_err(|error| format!("{opcode}: {error}"))
                    })*
                    "" => Err("an operation has no opcode".into()),
                    _ => Err(format!(
                        "there is no opcode {opcode:?}; there are {}", OPCODES.join(", ")
                    )),
                }
            }
        }
    };
}

operations! {
    /// Allocates devices to the claims that have none, each on a random node.
    "allocResourceClaims" AllocResourceClaims {
        /// The namespace of the claims; "": all.
        namespace: String,
    }
    /// Stops collecting until all pods are scheduled, or attempted.
    "barrier" Barrier {
        /// The namespaces; none: all.
        namespaces: Vec<String>,
        /// Only pods with these labels.
        label_selector: BTreeMap<String, String>,
        /// What is waited for.
        stage_requirement: StageRequirement,
    }
    /// Creates and deletes objects at intervals, while other operations run.
    "churn" Churn {
        /// Whether objects are created only, or deleted and created again.
        mode: Option<ChurnMode>,
        /// How many objects of each template there are at most; 0 for no limit.
        number: usize,
        /// The interval, 500 if 0.
        interval_milliseconds: u64,
        /// The namespace of the objects.
        namespace: Option<String>,
        /// The files of the objects.
        template_paths: Vec<String>,
    }
    /// Creates objects of a template.
    "createAny" CreateAny {
        /// Their namespace; "" for kinds without.
        namespace: String,
        /// The file of their manifest, a template.
        template_path: String,
        /// How many, 1 if unset.
        count: Option<usize>,
        /// The parameter with the number.
        count_param: String,
    }
    /// Creates namespaces with consecutive numbers.
    "createNamespaces" CreateNamespaces {
        /// Their names are `PREFIX-0` and so on.
        prefix: String,
        /// How many; `count_param` takes precedence.
        count: usize,
        /// The parameter with the number.
        count_param: String,
        /// Their file, if there is one.
        namespace_template_path: Option<String>,
    }
    /// Creates nodes with consecutive numbers.
    "createNodes" CreateNodes {
        /// How many; `count_param` takes precedence.
        count: usize,
        /// The parameter with the number.
        count_param: String,
        /// Their file; without one they have 4 CPUs, 32Gi and room for 110 pods.
        node_template_path: Option<String>,
        /// Amounts that they have.
        node_allocatable_strategy: Option<NodeAllocatable>,
        /// A label with one of several values.
        label_node_prepare_strategy: Option<NodeLabels>,
        /// A label whose value no other node has.
        unique_node_label_strategy: Option<UniqueNodeLabel>,
    }
    /// Creates pods, and mostly waits until they are scheduled.
    "createPods" CreatePods {
        /// How many; `count_param` takes precedence.
        count: usize,
        /// The parameter with the number.
        count_param: String,
        /// Once the pods are scheduled, deletes them and creates others, for `duration`.
        steady_state: bool,
        /// The parameter with that switch.
        steady_state_param: String,
        /// How long that goes on.
        duration: String,
        /// The parameter with the duration.
        duration_param: String,
        /// Whether this operation is measured.
        collect_metrics: bool,
        /// Their namespace, `namespace-N` for operation N if unset.
        namespace: Option<String>,
        /// Their file, if not that of the test case.
        pod_template_path: Option<String>,
        /// Does not wait until they are scheduled.
        skip_wait_to_completion: bool,
        /// The file of a volume for each pod.
        persistent_volume_template_path: Option<String>,
        /// The file of a claim for each pod.
        persistent_volume_claim_template_path: Option<String>,
    }
    /// Repeats an operation in several namespaces.
    "createPodSets" CreatePodSets {
        /// In how many namespaces; `count_param` takes precedence.
        count: usize,
        /// The parameter with the number.
        count_param: String,
        /// The namespaces are `PREFIX-0` and so on.
        namespace_prefix: String,
        /// The operation that is repeated.
        create_pods_op: CreatePods,
    }
    /// Creates resource claims of a template.
    "createResourceClaims" CreateResourceClaims {
        /// How many; `count_param` takes precedence.
        count: usize,
        /// The parameter with the number.
        count_param: String,
        /// The namespace they are created in.
        namespace: String,
        /// The file of their manifest, a template.
        template_path: String,
    }
    /// Creates a resource slice with devices for each of some nodes.
    "createResourceDriver" CreateResourceDriver {
        /// Name of the driver.
        driver_name: String,
        /// Devices of a node.
        max_claims_per_node: usize,
        /// The parameter with that number.
        max_claims_per_node_param: String,
        /// The nodes, with `*` as wildcard.
        nodes: String,
    }
    /// Deletes the pods of a namespace.
    "deletePods" DeletePods {
        /// The namespace whose pods are deleted.
        namespace: String,
        /// Only pods with these labels.
        label_selector: BTreeMap<String, String>,
        /// Continues with the next operation while they are deleted.
        skip_wait_to_completion: bool,
        /// How many in a second; 0: all at once.
        delete_pods_per_second: u32,
    }
    /// Waits before the next operation.
    "sleep" Sleep {
        /// How long, as Go writes durations; `duration_param` takes precedence.
        duration: String,
        /// The parameter with the duration.
        duration_param: String,
    }
    /// Begins a measurement, which the next `stopCollectingMetrics` ends.
    "startCollectingMetrics" StartCollectingMetrics {
        /// Appended to the name of the workload.
        name: String,
        /// The namespaces whose pods count.
        namespaces: Vec<String>,
        /// Only pods with these labels count.
        label_selector: BTreeMap<String, String>,
    }
    /// Ends the measurement that `startCollectingMetrics` began.
    "stopCollectingMetrics" StopCollectingMetrics {}
    /// Updates objects to what a template makes of them.
    "updateAny" UpdateAny {
        /// Their namespace; "" for kinds without.
        namespace: String,
        /// The file of their manifest, a template.
        template_path: String,
        /// How many, 1 if unset.
        count: Option<usize>,
        /// The parameter with the number.
        count_param: String,
        /// How many in a second; 0: all at once.
        update_per_second: u32,
        /// The subresource to update instead of the object.
        subresources: Vec<String>,
    }
}

/// What a barrier waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum StageRequirement {
    /// The pods have a node.
    #[default]
    Scheduled,
    /// The pods have a node, or were tried at least once.
    Attempted,
}

/// What `churn` does at each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChurnMode {
    /// Creates objects, up to `number`.
    Create,
    /// Creates objects, deletes them again, and so on.
    Recreate,
}

/// Amounts of nodes and of their CSI drivers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeAllocatable {
    /// Amounts by resource, for `status.allocatable`.
    pub node_allocatable: BTreeMap<String, String>,
    /// The `allocatable` of CSI drivers, by name.
    pub csi_node_allocatable: BTreeMap<String, Value>,
    /// In-tree volume plugins that are migrated to CSI.
    pub migrated_plugins: Vec<String>,
}

/// A label of nodes; the values take turns.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeLabels {
    /// Key of the label.
    pub label_key: String,
    /// The values, which the nodes get in turn.
    pub label_values: Vec<String>,
}

/// A label of nodes whose value no other node has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UniqueNodeLabel {
    /// Key of the label.
    pub label_key: String,
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Operation, D::Error> {
        deserializer.deserialize_map(OperationVisitor)
    }
}

/// Errors arise while the mapping is visited, because they get its line then.
struct OperationVisitor;

impl<'de> de::Visitor<'de> for OperationVisitor {
    type Value = Operation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation with an opcode")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Operation, A::Error> {
        let mut fields = serde_json::Map::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            fields.insert(name, value);
        }
        let opcode = fields.get("opcode").and_then(Value::as_str).unwrap_or_default().to_owned();
        let operation = Operation::of(&opcode, Value::Object(fields)).map_err(de::Error::custom)?;
        let checked = operation.check().map_err(|why| format!("{opcode}: {why}"));
        checked.map_err(de::Error::custom)?;
        Ok(operation)
    }
}

impl Operation {
    /// Whether a measurement ends with it.
    pub fn measures(&self) -> bool {
        match self {
            Operation::CreatePods(pods) => pods.collect_metrics,
            Operation::CreatePodSets(sets) => sets.create_pods_op.collect_metrics,
            Operation::StopCollectingMetrics(_) => true,
            _ => false,
        }
    }

    /// What is wrong with its fields, whatever the parameters are.
    fn check(&self) -> Result<(), String> {
        let required = |field: &str, value: &str| match value {
            "" => Err(format!("{field} is missing")),
            _ => Ok(()),
        };
        match self {
            Operation::Churn(churn) => churn.check(),
            Operation::CreateAny(any) => required("templatePath", &any.template_path),
            Operation::CreatePods(pods) => pods.check(),
            Operation::CreatePodSets(sets) => sets.create_pods_op.check(),
            Operation::CreateResourceClaims(claims) => {
                required("namespace", &claims.namespace)?;
                required("templatePath", &claims.template_path)
            }
            Operation::CreateResourceDriver(driver) => {
                required("driverName", &driver.driver_name)?;
                required("nodes", &driver.nodes)
            }
            Operation::StartCollectingMetrics(start) if start.namespaces.is_empty() => {
                Err("namespaces is missing".into())
            }
            Operation::UpdateAny(any) => required("templatePath", &any.template_path),
            _ => Ok(()),
        }
    }

    /// Replaces the names of parameters by their values.
    pub(super) fn resolve(&mut self, with: &Parameters) -> Result<(), String> {
        match self {
            Operation::CreateAny(any) => optional(with, &mut any.count, &any.count_param),
            Operation::UpdateAny(any) => optional(with, &mut any.count, &any.count_param),
            Operation::CreateNamespaces(op) => with.count(&mut op.count, &op.count_param),
            Operation::CreateNodes(op) => with.count(&mut op.count, &op.count_param),
            Operation::CreatePods(op) => op.resolve(with),
            Operation::CreatePodSets(op) => {
                with.count(&mut op.count, &op.count_param)?;
                op.create_pods_op.resolve(with)
            }
            Operation::CreateResourceClaims(op) => with.count(&mut op.count, &op.count_param),
            Operation::CreateResourceDriver(op) => {
                with.count(&mut op.max_claims_per_node, &op.max_claims_per_node_param)
            }
            Operation::Sleep(op) => {
                with.duration(&mut op.duration, &op.duration_param)?;
                micros(&op.duration).map(drop)
            }
            _ => Ok(()),
        }
    }
}

fn optional(with: &Parameters, count: &mut Option<usize>, parameter: &str) -> Result<(), String> {
    let mut number = count.unwrap_or(1);
    with.count(&mut number, parameter)?;
    *count = Some(number);
    Ok(())
}

impl Churn {
    fn check(&self) -> Result<(), String> {
        match self.mode {
            None => Err("mode is missing: create or recreate".into()),
            Some(ChurnMode::Recreate) if self.number == 0 => {
                Err("number cannot be 0 in mode recreate".into())
            }
            _ if self.template_paths.is_empty() => Err("templatePaths is missing".into()),
            _ => Ok(()),
        }
    }
}

impl CreatePods {
    fn check(&self) -> Result<(), String> {
        let excludes = |field: &str| {
            Err(format!("{field} and skipWaitToCompletion cannot be true at the same time"))
        };
        match self.skip_wait_to_completion {
            true if self.collect_metrics => excludes("collectMetrics"),
            true if self.steady_state => excludes("steadyState"),
            _ => Ok(()),
        }
    }

    fn resolve(&mut self, with: &Parameters) -> Result<(), String> {
        with.count(&mut self.count, &self.count_param)?;
        with.duration(&mut self.duration, &self.duration_param)?;
        with.switch(&mut self.steady_state, &self.steady_state_param)?;
        self.check()?;
        match self.steady_state && micros(&self.duration)? <= 0 {
            true => Err("with steadyState, duration has to be more than 0".into()),
            false => Ok(()),
        }
    }
}

/// A duration such as `1m30s` in microseconds; "" is none.
///
/// # Errors
/// It is no duration.
pub(crate) fn micros(duration: &str) -> Result<i64, String> {
    match duration {
        "" => Ok(0),
        _ => match Duration::parse(duration) {
            Some(parsed) => Ok(parsed.as_micros()),
            None => Err(format!("{duration:?} is not a duration such as \"10s\"")),
        },
    }
}
