//! The last step: whether kube-scheduler would start with this document, and which plugins it
//! would run.
//!
//! Upstream: NewFramework in `pkg/scheduler/framework/runtime/framework.go`,
//! `pkg/scheduler/profile/profile.go`, buildExtenders in `pkg/scheduler/scheduler.go`.

use kubestep_api::intern::Symbol;

use super::expand::{Points, expand, weigh};
use super::features::FeatureGates;
use super::opaque;
use super::path::FieldPath;
use super::points::{ExtensionPoint, PluginDescriptor};
use super::problem::Problem;
use super::profile::{ProfileArgs, ResolvedProfile};
use super::types::{Extender, KubeSchedulerConfiguration, KubeSchedulerProfile};
use super::validation::Findings;
use kubestep_api::Duration;

/// The time limit of extenders whose `httpTimeout` is not set.
const DEFAULT_EXTENDER_TIMEOUT: Duration = Duration::from_secs(5);

/// The extenders in the order of their calls. As upstream, ignorable extenders come last.
pub(crate) fn effective_extenders(extenders: &[Extender]) -> Vec<Extender> {
    let (ignorable, others): (Vec<Extender>, Vec<Extender>) =
        extenders.iter().cloned().partition(|extender| extender.ignorable);
    let mut ordered = others;
    ordered.extend(ignorable);
    set_time_limits(&mut ordered);
    ordered
}

/// Sets the default time limit of every extender that has none.
pub(crate) fn set_time_limits(extenders: &mut [Extender]) {
    for extender in extenders.iter_mut().filter(|extender| extender.http_timeout.nanos == 0) {
        extender.http_timeout = DEFAULT_EXTENDER_TIMEOUT;
    }
}

/// Checks that each extender's client can be built: as in client-go, `insecure` and an authority
/// exclude each other. Certificate files are not read.
pub(crate) fn check_clients(extenders: &[Extender]) -> Result<(), Problem> {
    let contradicts = |extender: &Extender| {
        let tls = extender.tls_config.as_ref();
        tls.is_some_and(|tls| tls.insecure && !(tls.ca_file.is_empty() && tls.ca_data.is_empty()))
    };
    let Some(at) = extenders.iter().position(contradicts) else { return Ok(()) };
    let path = FieldPath::root().field("extenders").index(at).field("tlsConfig");
    let message = "couldn't build extenders: specifying a root certificates file with the \
                   insecure flag is not allowed";
    Err(Problem::new(&path.field("insecure"), message).help("remove it, or the CA"))
}

/// All resources that extenders mark `ignoredByScheduler`.
pub fn ignored_resources(extenders: &[Extender]) -> Vec<Symbol> {
    let managed = extenders.iter().flat_map(|extender| &extender.managed_resources);
    managed.filter(|resource| resource.ignored_by_scheduler).map(|resource| resource.name).collect()
}

/// Builds the profiles of `document`.
pub fn profiles(
    document: &KubeSchedulerConfiguration,
    gates: &FeatureGates,
    registry: &[PluginDescriptor],
) -> Result<Vec<ResolvedProfile>, Problem> {
    let root = FieldPath::root().field("profiles");
    let profiles = with_ignored_resources(document, gates, registry, &root)?;
    let mut built = Vec::new();
    for (i, profile) in profiles.iter().enumerate() {
        let name = profile.scheduler_name;
        let path = root.index(i);
        let builder = Builder { profile, path: &path, gates, registry };
        let resolved = builder.build().map_err(|problem| {
            prefixed(problem, &format!("creating profile for scheduler name {name}: "))
        });
        let checked = resolved.and_then(|resolved| {
            check_together(profile, &resolved, &profiles[..i], &built, &path)?;
            Ok(resolved)
        });
        built.push(checked.map_err(|problem| prefixed(problem, "initializing profiles: "))?);
    }
    if built.is_empty() {
        return Err(Problem::new(&root, "at least one profile is required"));
    }
    Ok(built)
}

fn prefixed(mut problem: Problem, prefix: &str) -> Problem {
    problem.message.insert_str(0, prefix);
    problem
}

/// The profiles, with the extenders' ignored resources instead of those of NodeResourcesFit.
fn with_ignored_resources(
    document: &KubeSchedulerConfiguration,
    gates: &FeatureGates,
    registry: &[PluginDescriptor],
    path: &FieldPath,
) -> Result<Vec<KubeSchedulerProfile>, Problem> {
    let mut profiles = document.profiles.clone();
    let ignored = ignored_resources(&document.extenders);
    let ignores = |plugin: &&PluginDescriptor| {
        plugin.args.is_some_and(|args| args.default(gates).ignored_resources().is_some())
    };
    let Some(plugin) = registry.iter().find(ignores).filter(|_| !ignored.is_empty()) else {
        return Ok(profiles);
    };
    for (i, profile) in profiles.iter_mut().enumerate() {
        let name = plugin.name;
        let config = profile.plugin_config.iter_mut().find(|config| config.name == name);
        let args = config.and_then(|config| config.args.as_mut());
        let replaced = args.and_then(|args| {
            *args = args.with_ignored_resources(&ignored)?;
            Some(())
        });
        if replaced.is_none() {
            let message =
                format!("couldn't build extenders: can't find {name}Args in plugin config");
            let help = format!(
                "an extender has ignoredByScheduler, so every profile needs arguments for {name}"
            );
            return Err(Problem::new(&path.index(i), message).help(help));
        }
    }
    Ok(profiles)
}

struct Builder<'a> {
    profile: &'a KubeSchedulerProfile,
    path: &'a FieldPath,
    gates: &'a FeatureGates,
    registry: &'a [PluginDescriptor],
}

impl Builder<'_> {
    fn build(&self) -> Result<ResolvedProfile, Problem> {
        self.check_repeated_config()?;
        let needed = |plugin: &&PluginDescriptor| self.profile.plugins.needs(plugin.name);
        let instances: Vec<Symbol> =
            self.registry.iter().filter(needed).map(|plugin| plugin.name.into()).collect();
        for name in &instances {
            self.check_arguments(*name)?;
        }
        let mut points = expand(&self.profile.plugins, self.registry, &self.path.field("plugins"))?;
        opaque::settle(&mut points, self.registry);
        self.check_counts(&points)?;
        self.weigh(&mut points, ExtensionPoint::Score, "score plugins")?;
        self.weigh(&mut points, ExtensionPoint::PlacementScore, "placement score plugins")?;
        Ok(ResolvedProfile {
            scheduler_name: self.profile.scheduler_name,
            percentage_of_nodes_to_score: self.profile.percentage_of_nodes_to_score,
            points,
            opaque: instances
                .iter()
                .copied()
                .filter(|name| opaque::is_opaque(*name, self.registry))
                .collect(),
            instances,
            args: self.arguments(),
        })
    }

    fn check_repeated_config(&self) -> Result<(), Problem> {
        let configs = &self.profile.plugin_config;
        for (i, config) in configs.iter().enumerate() {
            if configs[..i].iter().any(|other| other.name == config.name) {
                let path = self.path.field("pluginConfig").index(i);
                let message = format!("repeated config for plugin {}", config.name);
                return Err(Problem::new(&path, message).help("remove one of the two entries"));
            }
        }
        Ok(())
    }

    /// Validates the arguments of one plugin again, as upstream's factory does; those of
    /// NodeResourcesFit were not validated before.
    fn check_arguments(&self, name: Symbol) -> Result<(), Problem> {
        let configs = self.profile.plugin_config.iter();
        let mut of_plugin = configs.enumerate().filter(|(_, config)| config.name == name);
        let Some((i, args)) = of_plugin.find_map(|(i, config)| Some((i, config.args.as_ref()?)))
        else {
            return Ok(());
        };
        let mut found = Findings::default();
        args.validate(&mut found, &FieldPath::root(), self.gates);
        let texts: Vec<String> = found.problems.iter().map(Problem::to_string).collect();
        let text = match texts.as_slice() {
            [] => return Ok(()),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let path = self.path.field("pluginConfig").index(i).field("args");
        Err(Problem::new(&path, format!("initializing plugin {:?}: {text}", name.as_str())))
    }

    /// A profile needs one queue sort plugin, a bind plugin, and at most one placement generator.
    fn check_counts(&self, points: &Points) -> Result<(), Problem> {
        let name = self.profile.scheduler_name;
        let count = |point: ExtensionPoint| opaque::count(&points[point.index()], self.registry);
        let at = |point: ExtensionPoint| self.path.field("plugins").field(point.key());
        let sorters = count(ExtensionPoint::QueueSort);
        if sorters != 1 {
            let message = format!(
                "only one queue sort plugin required for profile with scheduler name {name:?}, \
                 but got {sorters}"
            );
            let problem = Problem::new(&at(ExtensionPoint::QueueSort), message);
            return Err(match self.first_at(ExtensionPoint::QueueSort) {
                Some(name) => problem.help(format!("enable {name} and nothing else there")),
                None => problem,
            });
        }
        if count(ExtensionPoint::Bind) == 0 {
            let message = format!(
                "at least one bind plugin is needed for profile with scheduler name {name:?}"
            );
            let problem = Problem::new(&at(ExtensionPoint::Bind), message);
            return Err(match self.first_at(ExtensionPoint::Bind) {
                Some(name) => problem.help(format!("enable {name}")),
                None => problem,
            });
        }
        if count(ExtensionPoint::PlacementGenerate) > 1 {
            let message = format!(
                "at most one placement generate plugin is allowed for profile with scheduler \
                 name {name:?}"
            );
            return Err(Problem::new(&at(ExtensionPoint::PlacementGenerate), message));
        }
        Ok(())
    }

    /// The first plugin that could run at `point`.
    fn first_at(&self, point: ExtensionPoint) -> Option<&'static str> {
        self.registry.iter().find(|plugin| plugin.implements(point)).map(|plugin| plugin.name)
    }

    fn weigh(&self, points: &mut Points, point: ExtensionPoint, what: &str) -> Result<(), Problem> {
        weigh(points, point, &self.profile.plugins).map_err(|text| {
            let path = self.path.field("plugins").field(point.key());
            Problem::new(&path, format!("{what}: {text}"))
        })
    }

    fn arguments(&self) -> ProfileArgs {
        let mut args = ProfileArgs::default();
        for config in &self.profile.plugin_config {
            if let Some(own) = &config.args {
                args.set(config.name, own.clone());
            }
        }
        args
    }
}

/// Checks that scheduler names differ and that all profiles sort their common queue alike.
fn check_together(
    profile: &KubeSchedulerProfile,
    resolved: &ResolvedProfile,
    profiles: &[KubeSchedulerProfile],
    built: &[ResolvedProfile],
    path: &FieldPath,
) -> Result<(), Problem> {
    let name = profile.scheduler_name;
    let name_path = path.field("schedulerName");
    if name.is_empty() {
        return Err(Problem::new(&name_path, "scheduler name is needed"));
    }
    if built.iter().any(|other| other.scheduler_name == name) {
        let message = format!("duplicate profile with scheduler name {name:?}");
        return Err(Problem::new(&name_path, message));
    }
    let (Some(first), Some(first_config)) = (built.first(), profiles.first()) else {
        return Ok(());
    };
    let sorter = |profile: &ResolvedProfile| {
        profile.at(ExtensionPoint::QueueSort).first().map(|plugin| plugin.name).unwrap_or_default()
    };
    let (own, others) = (sorter(resolved), sorter(first));
    if own != others {
        let message = format!(
            "different queue sort plugins for profile {name:?}: {own:?}, first: {others:?}"
        );
        let path = path.field("plugins").field("queueSort");
        return Err(Problem::new(&path, message).help("all profiles share one queue"));
    }
    let args = |profile: &KubeSchedulerProfile| {
        let config = profile.plugin_config.iter().find(|config| config.name == own);
        config.and_then(|config| config.args.clone())
    };
    if args(profile) != args(first_config) {
        let message = format!("different queue sort plugin args for profile {name:?}");
        return Err(Problem::new(&path.field("pluginConfig"), message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_needs_a_profile() {
        let gates = FeatureGates::default();
        let mut document = crate::defaults::document(&gates);
        document.profiles.clear();
        let problem = profiles(&document, &gates, &[]).unwrap_err();
        assert_eq!(problem.to_string(), "profiles: at least one profile is required");
    }
}
