//! Where the interface's files live: XDG directories everywhere but Windows, with one variable to move
//! the configuration.

use std::path::PathBuf;

use etcetera::BaseStrategy;

/// Environment variable that replaces the configuration directory.
pub const CONFIG_DIR_VARIABLE: &str = "KUBESTEP_CONFIG_DIR";

/// The directory of `config.yaml` and `themes/`, when the platform has one. It need not exist.
pub fn config_dir(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if let Some(dir) = env(CONFIG_DIR_VARIABLE).filter(|d| !d.is_empty()) {
        return Some(PathBuf::from(dir));
    }
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("kubestep"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_unless_empty() {
        let moved = config_dir(|n| (n == CONFIG_DIR_VARIABLE).then(|| "/x/y".into()));
        assert_eq!(moved, Some(PathBuf::from("/x/y")));
        let default = config_dir(|_| Some(String::new()));
        assert!(default.is_none_or(|d| d.ends_with("kubestep")));
    }
}
