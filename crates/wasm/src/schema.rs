//! The messages in which guests get objects: the fields of Kubernetes' protobuf schema that
//! kubestep keeps, with their numbers.
//!
//! A line is a message. A field is `name=number:type`, by its name in JSON. Types are `s` (string),
//! `i` (integer), `b` (boolean), `T` (time), `Q` (quantity), `%` (map of strings), `%Q` (map of
//! quantities), `-` (a message of which only the presence is known) or the name of a message. `*`
//! is a list. `!` is a field that Go holds by value, which is written even if it is empty. `~` is a
//! message whose fields JSON has in the one around it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A field of a message.
pub(crate) struct Field {
    /// Its name in JSON; `~` for an inlined message.
    pub name: &'static str,
    pub number: u32,
    /// Whether it is written even if it is empty.
    pub is_value: bool,
    pub kind: &'static str,
}

/// The fields of a message.
pub(crate) fn message(name: &str) -> &'static [Field] {
    MESSAGES.get(name).map_or(&[], Vec::as_slice)
}

static MESSAGES: LazyLock<BTreeMap<&str, Vec<Field>>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let (name, fields) = line.split_once(": ")?;
        Some((name, fields.split(' ').filter_map(field).collect()))
    };
    SCHEMA.lines().filter_map(line).collect()
});

fn field(text: &'static str) -> Option<Field> {
    let (name, rest) = text.split_once('=')?;
    let (number, kind) = rest.split_once(':')?;
    let (kind, is_value) = kind.strip_suffix('!').map_or((kind, false), |kind| (kind, true));
    let kind = kind.strip_prefix('*').unwrap_or(kind);
    Some(Field { name, number: number.parse().ok()?, is_value, kind })
}

const SCHEMA: &str = "\
Pod: metadata=1:ObjectMeta! spec=2:PodSpec! status=3:PodStatus!\n\
ObjectMeta: name=1:s! generateName=2:s! namespace=3:s! uid=5:s! resourceVersion=6:s! \
    generation=7:i! creationTimestamp=8:T! deletionTimestamp=9:T labels=11:% annotations=12:% \
    ownerReferences=13:*OwnerReference finalizers=14:*s\n\
OwnerReference: apiVersion=5:s! kind=1:s! name=3:s! uid=4:s! controller=6:b \
    blockOwnerDeletion=7:b\n\
PodSpec: volumes=1:*Volume initContainers=20:*Container containers=2:*Container \
    restartPolicy=3:s! terminationGracePeriodSeconds=4:i nodeSelector=7:% \
    serviceAccountName=8:s! nodeName=10:s! hostNetwork=11:b! affinity=18:Affinity \
    schedulerName=19:s! tolerations=22:*Toleration priorityClassName=24:s! priority=25:i \
    runtimeClassName=29:s preemptionPolicy=31:s overhead=32:%Q \
    topologySpreadConstraints=33:*TopologySpreadConstraint os=36:PodOS hostUsers=37:b \
    schedulingGates=38:*PodSchedulingGate resourceClaims=39:*PodResourceClaim \
    resources=40:ResourceRequirements schedulingGroup=43:PodSchedulingGroup\n\
Volume: name=1:s! ~=2:VolumeSource\n\
VolumeSource: hostPath=1:- emptyDir=2:- gcePersistentDisk=3:GCEPersistentDiskVolumeSource \
    awsElasticBlockStore=4:AWSElasticBlockStoreVolumeSource secret=6:- nfs=7:- \
    iscsi=8:ISCSIVolumeSource persistentVolumeClaim=10:PersistentVolumeClaimVolumeSource \
    rbd=11:RBDVolumeSource cinder=13:CinderVolumeSource downwardAPI=16:- azureFile=18:- \
    configMap=19:- vsphereVolume=20:- azureDisk=22:AzureDiskVolumeSource projected=26:- \
    portworxVolume=24:PortworxVolumeSource csi=28:CSIVolumeSource \
    ephemeral=29:EphemeralVolumeSource image=30:ImageVolumeSource\n\
GCEPersistentDiskVolumeSource: pdName=1:s! partition=3:i! readOnly=4:b!\n\
AWSElasticBlockStoreVolumeSource: volumeID=1:s! partition=3:i! readOnly=4:b!\n\
ISCSIVolumeSource: targetPortal=1:s! iqn=2:s! lun=3:i! readOnly=6:b! portals=7:*s\n\
PersistentVolumeClaimVolumeSource: claimName=1:s! readOnly=2:b!\n\
RBDVolumeSource: monitors=1:*s image=2:s! pool=4:s! readOnly=8:b!\n\
CinderVolumeSource: volumeID=1:s! readOnly=3:b!\n\
AzureDiskVolumeSource: diskName=1:s! diskURI=2:s! readOnly=5:b kind=6:s\n\
PortworxVolumeSource: volumeID=1:s! readOnly=3:b!\n\
CSIVolumeSource: driver=1:s! readOnly=2:b\n\
EphemeralVolumeSource: volumeClaimTemplate=1:PersistentVolumeClaimTemplate\n\
PersistentVolumeClaimTemplate: metadata=1:ObjectMeta! spec=2:PersistentVolumeClaimSpec!\n\
PersistentVolumeClaimSpec: accessModes=1:*s selector=4:LabelSelector \
    resources=2:VolumeResourceRequirements! volumeName=3:s! storageClassName=5:s volumeMode=6:s \
    volumeAttributesClassName=9:s\n\
LabelSelector: matchLabels=1:% matchExpressions=2:*LabelSelectorRequirement\n\
LabelSelectorRequirement: key=1:s! operator=2:s! values=3:*s\n\
VolumeResourceRequirements: limits=1:%Q requests=2:%Q\n\
ImageVolumeSource: reference=1:s!\n\
Container: name=1:s! image=2:s! ports=6:*ContainerPort resources=8:ResourceRequirements! \
    restartPolicy=24:s restartPolicyRules=25:*ContainerRestartRule\n\
ContainerPort: name=1:s! hostPort=2:i! containerPort=3:i! protocol=4:s! hostIP=5:s!\n\
ResourceRequirements: limits=1:%Q requests=2:%Q claims=3:*ResourceClaim\n\
ResourceClaim: name=1:s! request=2:s!\n\
ContainerRestartRule: action=1:s! exitCodes=2:ContainerRestartRuleOnExitCodes\n\
ContainerRestartRuleOnExitCodes: operator=1:s! values=2:*i\n\
Affinity: nodeAffinity=1:NodeAffinity podAffinity=2:PodAffinity \
    podAntiAffinity=3:PodAntiAffinity\n\
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution=1:NodeSelector \
    preferredDuringSchedulingIgnoredDuringExecution=2:*PreferredSchedulingTerm\n\
NodeSelector: nodeSelectorTerms=1:*NodeSelectorTerm\n\
NodeSelectorTerm: matchExpressions=1:*NodeSelectorRequirement \
    matchFields=2:*NodeSelectorRequirement\n\
NodeSelectorRequirement: key=1:s! operator=2:s! values=3:*s\n\
PreferredSchedulingTerm: weight=1:i! preference=2:NodeSelectorTerm!\n\
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution=1:*PodAffinityTerm \
    preferredDuringSchedulingIgnoredDuringExecution=2:*WeightedPodAffinityTerm\n\
PodAffinityTerm: labelSelector=1:LabelSelector namespaces=2:*s topologyKey=3:s! \
    namespaceSelector=4:LabelSelector matchLabelKeys=5:*s mismatchLabelKeys=6:*s\n\
WeightedPodAffinityTerm: weight=1:i! podAffinityTerm=2:PodAffinityTerm!\n\
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution=1:*PodAffinityTerm \
    preferredDuringSchedulingIgnoredDuringExecution=2:*WeightedPodAffinityTerm\n\
Toleration: key=1:s! operator=2:s! value=3:s! effect=4:s! tolerationSeconds=5:i\n\
TopologySpreadConstraint: maxSkew=1:i! topologyKey=2:s! whenUnsatisfiable=3:s! \
    labelSelector=4:LabelSelector minDomains=5:i nodeAffinityPolicy=6:s nodeTaintsPolicy=7:s \
    matchLabelKeys=8:*s\n\
PodOS: name=1:s!\n\
PodSchedulingGate: name=1:s!\n\
PodResourceClaim: name=1:s! resourceClaimName=3:s resourceClaimTemplateName=4:s\n\
PodSchedulingGroup: podGroupName=1:s\n\
PodStatus: observedGeneration=17:i! phase=1:s! conditions=2:*PodCondition message=3:s! \
    reason=4:s! nominatedNodeName=11:s! startTime=7:T initContainerStatuses=10:*ContainerStatus \
    containerStatuses=8:*ContainerStatus resourceClaimStatuses=15:*PodResourceClaimStatus \
    extendedResourceClaimStatus=18:PodExtendedResourceClaimStatus allocatedResources=19:%Q \
    resources=20:ResourceRequirements \
    nodeAllocatableResourceClaimStatuses=21:*NodeAllocatableResourceClaimStatus\n\
PodCondition: type=1:s! observedGeneration=7:i! status=2:s! lastProbeTime=3:T! \
    lastTransitionTime=4:T! reason=5:s! message=6:s!\n\
ContainerStatus: name=1:s! allocatedResources=10:%Q resources=11:ResourceRequirements\n\
PodResourceClaimStatus: name=1:s! resourceClaimName=2:s\n\
PodExtendedResourceClaimStatus: requestMappings=1:*ContainerExtendedResourceRequest \
    resourceClaimName=2:s!\n\
ContainerExtendedResourceRequest: containerName=1:s! resourceName=2:s! requestName=3:s!\n\
NodeAllocatableResourceClaimStatus: resourceClaimName=1:s! containers=2:*s resources=3:%Q\n\
Node: metadata=1:ObjectMeta! spec=2:NodeSpec! status=3:NodeStatus!\n\
NodeSpec: providerID=3:s! unschedulable=4:b! taints=5:*Taint\n\
Taint: key=1:s! value=2:s! effect=3:s! timeAdded=4:T\n\
NodeStatus: capacity=1:%Q allocatable=2:%Q conditions=4:*NodeCondition images=8:*ContainerImage \
    declaredFeatures=14:*s\n\
NodeCondition: type=1:s! status=2:s! lastTransitionTime=4:T! reason=5:s! message=6:s!\n\
ContainerImage: names=1:*s sizeBytes=2:i!\n\
NodeList: metadata=1:-! items=2:*Node\n\
";
