//! Finds suites in files and folders, and chooses workloads of them.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

use crate::report::bench::ChosenWorkload;
use kubestep_api::glob::glob;
use kubestep_bench::suite::{FILE_NAME, LabelFilter, Suite};

/// The suites in files and below folders.
pub(super) fn suites(paths: &[PathBuf]) -> Result<Vec<Suite>> {
    let mut suites = Vec::new();
    for path in paths {
        let files = match path.is_dir() {
            true => kubestep_source::below(path, is_suite)
                .map_err(|(path, error)| anyhow!("{}: {error}", path.display()))?,
            false => vec![path.clone()],
        };
        if files.is_empty() {
            bail!("{}: there is no {FILE_NAME} in this folder", path.display());
        }
        for file in files {
            let text = kubestep_source::read_whole(&file)?;
            suites.push(Suite::parse(&file, &text)?);
        }
    }
    Ok(suites)
}

fn is_suite(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == FILE_NAME)
}

/// The workloads with these labels and names, in the order of the files.
pub(super) fn choose<'a>(
    suites: &'a [Suite],
    labels: &LabelFilter,
    names: &[String],
) -> Result<Vec<ChosenWorkload<'a>>> {
    let all = suites.iter().flat_map(|suite| {
        suite.cases.iter().flat_map(move |case| {
            case.workloads.iter().map(move |workload| ChosenWorkload { suite, case, workload })
        })
    });
    let all: Vec<ChosenWorkload<'_>> = all.collect();
    let is_named = |chosen: &&ChosenWorkload<'_>| {
        names.is_empty() || names.iter().any(|name| glob(name, &chosen.name()))
    };
    let named: Vec<&ChosenWorkload<'_>> = all.iter().filter(is_named).collect();
    if named.is_empty() {
        bail!("--filter: none of the {} workloads has such a name", all.len());
    }
    let takes = |chosen: &&&ChosenWorkload<'_>| labels.takes(chosen.case.labels(chosen.workload));
    let taken: Vec<ChosenWorkload<'_>> =
        named.iter().filter(takes).map(|chosen| **chosen).collect();
    match taken.is_empty() {
        true => Err(none_taken(&named)),
        false => Ok(taken),
    }
}

fn none_taken(named: &[&ChosenWorkload<'_>]) -> anyhow::Error {
    let labels = named.iter().flat_map(|chosen| chosen.case.labels(chosen.workload));
    let mut labels: Vec<&str> = labels.collect();
    labels.sort_unstable();
    labels.dedup();
    let labels = match labels.is_empty() {
        true => "they have no labels".to_owned(),
        false => format!("they have {}", labels.join(", ")),
    };
    anyhow!(
        "none of the {} workloads has the labels: {labels}\n  help: --label \"\" takes all of them",
        named.len()
    )
}
