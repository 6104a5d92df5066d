//! A text in the person's own editor: `$VISUAL`, `$EDITOR`, else `vi`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

/// Lines at the top that are not part of the text.
const COMMENT: &str = "# ";

/// Lets the text be edited; the terminal must not be ours meanwhile. `None`: it was not
/// changed, or everything was deleted.
pub fn edit(text: &str, problem: Option<&str>) -> io::Result<Option<String>> {
    let path = create(&with_comment(text, problem))?;
    // The shell takes the editor's own arguments apart.
    let command = "exec ${VISUAL:-${EDITOR:-vi}} \"$1\"";
    let ended = Command::new("sh").args(["-c", command, "kubestep"]).arg(&path).status();
    let edited = fs::read_to_string(&path);
    fs::remove_file(&path)?;
    let ended = ended?;
    if !ended.success() {
        return Err(io::Error::other(format!("the editor failed ({ended}); nothing was changed")));
    }
    let edited = without_comment(&edited?);
    Ok((edited.trim() != text.trim() && !edited.trim().is_empty()).then_some(edited))
}

/// A new file that only the person can read: objects may hold what is nobody else's business.
fn create(text: &str) -> io::Result<PathBuf> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let folder = std::env::temp_dir();
    for number in 0..1000 {
        let path = folder.join(format!("kubestep-{}-{number}.yaml", std::process::id()));
        match options.open(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("no name is free in {}", folder.display())))
}

fn with_comment(text: &str, problem: Option<&str>) -> String {
    let head = match problem {
        None => {
            "Saved and closed, this is tried in a branch; unchanged, nothing happens.".to_owned()
        }
        Some(problem) => {
            format!("This could not be done:\n{problem}\nClose without a change to cancel.")
        }
    };
    let head: String = head.lines().map(|line| format!("{COMMENT}{line}\n")).collect();
    format!("{head}{text}")
}

fn without_comment(text: &str) -> String {
    let is_comment = |line: &&str| line.starts_with('#');
    text.split_inclusive('\n').skip_while(is_comment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comment_comes_off_as_it_came_on() {
        let text = "kind: Pod\n# a comment of its own\nspec: {}\n";
        for problem in [None, Some("line 3: wrong\n  help: do better")] {
            let shown = with_comment(text, problem);
            assert!(shown.starts_with("# "), "{shown}");
            assert_eq!(without_comment(&shown), text);
        }
    }
}
