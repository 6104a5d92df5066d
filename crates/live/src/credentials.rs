//! Errors of kubeconfigs and credential plugins without their secrets: a kubeconfig's lines, and a
//! plugin's arguments, environment and output.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use kube::Config;
use kube::client::AuthError;
use kube::config::{Kubeconfig, KubeconfigError};

use crate::failure::root_cause;
use crate::runtime;

/// How long a credential plugin may run before a message says what is being waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// The credential plugin that the kubeconfig names, and how much of its output is shown.
#[derive(Clone, Debug, Default)]
pub struct Plugin {
    /// The program; `None` if no plugin is configured.
    pub name: Option<String>,
    /// Whether its standard error is shown when it fails.
    pub verbose: bool,
}

impl Plugin {
    /// The plugin of a client configuration.
    pub fn of(config: &Config, verbose: bool) -> Plugin {
        let exec = config.auth_info.exec.as_ref();
        Plugin { name: exec.and_then(|exec| exec.command.clone()), verbose }
    }

    /// Why a request failed, if the credentials are the reason.
    pub fn problem(&self, error: &(dyn Error + 'static)) -> Option<String> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref() {
                return Some(self.explain(error));
            }
            cause = error.source();
        }
        None
    }

    fn explain(&self, error: &AuthError) -> String {
        let plugin = match &self.name {
            Some(name) => format!("the credential plugin {name:?}"),
            None => "the credential plugin".to_owned(),
        };
        match error {
            AuthError::AuthExecRun { out, .. } => {
                let stderr = String::from_utf8_lossy(&out.stderr);
                let shown = match (self.verbose, stderr.trim()) {
                    (true, "") => "; it wrote nothing to standard error".to_owned(),
                    (true, text) => format!(": {text}"),
                    (false, _) => "; -v shows what it wrote to standard error".to_owned(),
                };
                format!("{plugin} failed ({}){shown}", out.status)
            }
            AuthError::AuthExecStart(error) => format!("{plugin} cannot be run: {error}"),
            AuthError::AuthExecParse(_) => format!("{plugin} printed no valid ExecCredential"),
            AuthError::AuthExec(_) | AuthError::ParseTokenKey(_) => {
                "the kubeconfig's auth-provider failed".to_owned()
            }
            error => root_cause(error),
        }
    }

    /// Runs `work`, which may start the plugin. If that takes long, a message on standard error
    /// names what is being waited for. Not for use while the debugger's screen is shown.
    pub fn wait_for<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(name) = self.name.clone() else { return work() };
        let (working, ended) = channel::<()>();
        let watch = move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                kubestep_output::line(format!("waiting for the credential plugin {name:?}"));
            }
        };
        // If no thread can be started, the message is omitted.
        let _watching = runtime::thread("credentials", watch);
        let done = work();
        drop(working);
        done
    }
}

/// The file, and the problem with its line and field if they are known, without any of the file's
/// text.
pub(crate) fn kubeconfig_problem(
    files: &[PathBuf],
    error: &KubeconfigError,
) -> (Option<String>, String) {
    if !matches!(error, KubeconfigError::Parse(_)) {
        return (None, root_cause(error));
    }
    let found = files.iter().find_map(|file| Some((file, broken(file)?)));
    let Some((file, (line, problem))) = found else {
        return (None, "is not a kubeconfig".to_owned());
    };
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    (Some(format!("{}{line}", file.display())), problem)
}

/// The line and the problem of a file that is not a valid kubeconfig.
fn broken(file: &Path) -> Option<(Option<u64>, String)> {
    let text = std::fs::read_to_string(file).ok()?;
    let Err(KubeconfigError::Parse(error)) = Kubeconfig::from_yaml(&text) else { return None };
    let line = error.location().map(|place| place.line()).filter(|line| *line > 0);
    Some((line, field_problem(&text).unwrap_or_else(|| "is not valid YAML".to_owned())))
}

/// The field whose value has the wrong type, and the expected type. The decoder's message quotes
/// the value, so only its end is used, which names the type.
fn field_problem(text: &str) -> Option<String> {
    let decoder = kubestep_api::yaml::documents(text).ok()?;
    let error = serde_path_to_error::deserialize::<_, Kubeconfig>(decoder).err()?;
    let path = error.path().to_string();
    let message = error.inner().to_string();
    let (_, problem) = message.split_once("invalid type: ")?;
    let (_, expected) = problem.rsplit_once(", expected ")?;
    let expected = expected.split(" at line ").next().unwrap_or(expected);
    Some(format!("{path}: expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{ExitStatus, Output};

    fn problem(text: &str) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, text).unwrap();
        let error = Kubeconfig::read_from(&file).unwrap_err();
        let (place, problem) = kubeconfig_problem(std::slice::from_ref(&file), &error);
        let place = place.unwrap_or_default();
        (place.replace(&format!("{}:", file.display()), ""), problem)
    }

    #[test]
    fn a_kubeconfig_that_is_broken_is_not_quoted() {
        let users = "users:\n- name: u\n  user:\n    token: SECRET\n    password: ";
        let (line, text) = problem(&format!("{users}\"SECRET\n"));
        assert!(line.parse::<u32>().is_ok(), "{line}");
        assert_eq!(text, "is not valid YAML");
        let (line, text) = problem(&format!("{users}\n    - SECRET\n"));
        assert!(line.parse::<u32>().is_ok_and(|line| line >= 5), "{line}");
        assert!(text.starts_with("users[0].user.password: expected "), "{text}");
        let (_, text) = problem("clusters: SECRET\n");
        assert!(text.starts_with("clusters: expected ") && !text.contains("SECRET"), "{text}");
    }

    #[test]
    fn a_plugin_that_fails_is_named_and_not_quoted() {
        let out = Output {
            status: ExitStatus::from_raw(3 << 8),
            stdout: b"TOKEN".into(),
            stderr: b"reason\n".into(),
        };
        let error = AuthError::AuthExecRun { cmd: "A=\"KEY\" aws".into(), out: Box::new(out) };
        let error = kube::Error::Service(Box::new(error));
        let reported = |verbose| {
            let plugin = Plugin { name: Some("aws".into()), verbose };
            plugin.problem(&error).unwrap()
        };
        let quiet = "the credential plugin \"aws\" failed (exit status: 3); -v shows what it wrote \
                     to standard error";
        assert_eq!(reported(false), quiet);
        assert_eq!(reported(true), "the credential plugin \"aws\" failed (exit status: 3): reason");
    }
}
