//! Creates pods, with a volume each if the operation says so, and waits for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::WorkloadRun;
use crate::BenchError;
use crate::manifest::{NewObject, base_pod, of_kind};
use crate::suite::operation::{self, CreatePods, StageRequirement};
use crate::target::PodFilter;

impl WorkloadRun<'_> {
    pub(super) fn create_pods(&mut self, at: usize, wanted: &CreatePods) -> Result<(), BenchError> {
        let namespace = wanted.namespace.clone().unwrap_or_else(|| format!("namespace-{at}"));
        self.require_namespace(&namespace)?;
        let all = PodFilter::new(&namespace, &BTreeMap::new());
        if wanted.collect_metrics {
            self.begin(&namespace, all.clone())?;
        }
        if wanted.steady_state {
            self.keep_steady(&namespace, wanted)?;
        } else {
            self.create_batch(&namespace, wanted)?;
            match wanted.skip_wait_to_completion {
                true => *self.namespaces.entry(namespace).or_default() += wanted.count,
                false => self.wait(&all, wanted.count, StageRequirement::Scheduled)?,
            }
        }
        if wanted.collect_metrics { self.stop() } else { Ok(()) }
    }

    /// Creates all pods of an operation at once.
    fn create_batch(&mut self, namespace: &str, wanted: &CreatePods) -> Result<(), BenchError> {
        let own = wanted.pod_template_path.as_deref();
        let path = own.or(self.case.default_pod_template_path.as_deref());
        let mut pods = match path {
            Some(path) => self.objects(path, wanted.count, namespace)?,
            None => vec![NewObject::new(Arc::new(base_pod()), namespace); wanted.count],
        };
        if let Some(path) = &wanted.persistent_volume_claim_template_path {
            let claim = self.templates.get(path)?.object(0, 1)?;
            let volume = match &wanted.persistent_volume_template_path {
                Some(path) => self.templates.get(path)?.object(0, 1)?,
                None => {
                    let why = "persistentVolumeTemplatePath is missing";
                    return Err(why.to_owned().into());
                }
            };
            let mut volumes = Vec::new();
            for (index, pod) in pods.iter_mut().enumerate() {
                volumes.extend(bound_volume(&claim, &volume, namespace, index));
                pod.value = Arc::new(with_claim(&pod.value, index));
            }
            self.target.create(volumes)?;
        }
        self.target.create(pods)?;
        Ok(())
    }

    /// Creates a batch of pods, and the next one whenever all are scheduled, for some time.
    fn keep_steady(&mut self, namespace: &str, wanted: &CreatePods) -> Result<(), BenchError> {
        let nanos = operation::micros(&wanted.duration)?.unsigned_abs() * 1000;
        let end = self.target.now() + nanos;
        let all = PodFilter::new(namespace, &BTreeMap::new());
        let mut scheduled = 0;
        self.create_batch(namespace, wanted)?;
        while self.target.now() < end {
            let counts = self.target.count(&all)?;
            let missing = wanted.count.saturating_sub(counts.scheduled);
            if missing == 0 {
                scheduled += counts.scheduled;
                let names = self.target.pod_names(&all)?;
                self.target.delete_pods(namespace, &names, true)?;
                self.create_batch(namespace, wanted)?;
            }
            for _ in 0..missing {
                self.turn(end)?;
            }
        }
        match scheduled + self.target.count(&all)?.scheduled {
            0 => Err(format!("no pod was scheduled within {}", wanted.duration).into()),
            _ => Ok(()),
        }
    }
}

/// The name of the claim of pod number `index` of an operation.
fn claim_name(index: usize) -> String {
    format!("pvc-{index}")
}

/// A claim and a volume that are bound to each other.
fn bound_volume(claim: &Value, volume: &Value, namespace: &str, index: usize) -> [NewObject; 2] {
    let claim_name = claim_name(index);
    let volume_name = format!("{namespace}-vol-{index}");
    let mut claim = of_kind(claim, "v1", "PersistentVolumeClaim");
    claim["metadata"]["name"] = claim_name.as_str().into();
    claim["spec"]["volumeName"] = volume_name.as_str().into();
    claim["status"]["phase"] = "Bound".into();
    let mut volume = of_kind(volume, "v1", "PersistentVolume");
    volume["metadata"]["name"] = volume_name.as_str().into();
    let spec = &mut volume["spec"];
    spec["claimRef"] = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": claim_name,
    });
    if spec["csi"].is_object() {
        spec["csi"]["volumeHandle"] = volume_name.into();
    } else if spec["awsElasticBlockStore"].is_object() {
        spec["awsElasticBlockStore"]["volumeID"] = format!("vol-{index}").into();
    }
    volume["status"]["phase"] = "Bound".into();
    [NewObject::new(Arc::new(claim), namespace), NewObject::new(Arc::new(volume), "")]
}

/// The pod with the claim of its number as its only volume.
fn with_claim(pod: &Value, index: usize) -> Value {
    let mut pod = pod.clone();
    let claim = json!({"claimName": claim_name(index)});
    pod["spec"]["volumes"] = json!([{"name": "vol", "persistentVolumeClaim": claim}]);
    pod
}
