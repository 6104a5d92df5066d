//! The real program in a pseudo-terminal: it opens, steps, redraws, and restores the terminal
//! whichever way it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

mod given;
mod hostile;
mod stand_in;
mod terminal;

use std::io::Write;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use terminal::{Terminal, kubestep, plain_environment};

fn demo(args: &[&str], width: u16, height: u16) -> Terminal {
    let args: Vec<&str> = ["demo"].iter().chain(args).copied().collect();
    let terminal = Terminal::start(kubestep(&args), width, height);
    terminal.wait_for("? help");
    terminal
}

#[test]
fn the_demo_opens_steps_and_quits() {
    let mut terminal = demo(&[], 80, 24);
    assert!(terminal.screen(|s| s.alternate_screen() && s.bracketed_paste()));
    terminal.wait_for("Queues: active");
    terminal.send("n");
    terminal.wait_for("cycle 1 of default/");
    terminal.send("ss");
    terminal.wait_for("PreFilter");
    terminal.send("c");
    terminal.wait_for("IDLE");
    terminal.send("1");
    terminal.wait_for("Timeline: recorded cycles");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

/// Screenshots in the documents come from `kubestep render`.
#[test]
fn a_rendered_picture_is_what_a_terminal_shows() {
    let mut terminal = demo(&[], 80, 24);
    for cycle in ["1 default/payment", "2 ", "3 ", "4 ", "5 default/database"] {
        terminal.send("n");
        terminal.wait_for(&format!("cycle {cycle}"));
    }
    let rendered = assert_cmd::Command::cargo_bin("kubestep")
        .unwrap()
        .env_clear()
        .args(["render", "--demo", "tour", "--keys", "nnnnn3", "--size", "80x24"])
        .output()
        .unwrap();
    let picture = String::from_utf8(rendered.stdout).unwrap();
    terminal.send("3");
    terminal.wait(&format!("such screen:\n{picture}\nbut"), |screen| {
        let lines: Vec<String> = screen.rows(0, 80).collect();
        picture.lines().eq(lines.iter().map(|line| line.trim_end()))
    });
}

#[test]
fn ctrl_c_leaves_at_once() {
    let mut terminal = demo(&[], 80, 24);
    terminal.send("\x03");
    assert_eq!(terminal.exit_code(), 130);
    terminal.assert_restored();
}

#[test]
fn ctrl_c_leaves_whatever_was_read_at_once_with_it() {
    // Esc turns the next key into one with Alt, and `Esc ]` starts like the response with the
    // background color.
    for keys in ["\x1b\x03", "\x1b]\x03", "\x1b]nnn\x03", "\x1b]11;rgb:ff\x03", "\x1b[5~\x03"] {
        let mut terminal = demo(&[], 80, 24);
        terminal.send(keys);
        assert_eq!(terminal.exit_code(), 130, "{keys:?}");
        terminal.assert_restored();
    }
}

#[test]
fn signals_end_it_with_the_terminal_restored() {
    for (name, code) in [
        ("TERM", 143),
        ("HUP", 129),
        ("INT", 130),
        ("QUIT", 131),
        ("ABRT", 134),
        ("USR1", 138),
        ("ALRM", 142),
        ("XCPU", 152),
        ("VTALRM", 154),
    ] {
        let mut terminal = demo(&[], 80, 24);
        terminal.signal(name);
        assert_eq!(terminal.exit_code(), code, "{name}");
        terminal.assert_restored();
    }
}

#[test]
fn a_signal_while_the_terminal_is_asked_for_its_colours_leaves_it_as_it_was() {
    for (name, code) in [("TERM", 143), ("INT", 130), ("QUIT", 131)] {
        let mut terminal = Terminal::start(kubestep(&["demo"]), 80, 24);
        // The query for the background color, to which this terminal does not respond.
        let start = Instant::now();
        while !String::from_utf8_lossy(&terminal.bytes()).contains("\x1b]11;?") {
            assert!(start.elapsed() < Duration::from_secs(20), "the terminal is not asked");
            std::thread::sleep(Duration::from_millis(2));
        }
        terminal.signal(name);
        assert_eq!(terminal.exit_code(), code, "{name}");
        terminal.assert_restored();
    }
}

#[test]
fn signals_that_do_not_end_programs_of_rust_do_not_end_it() {
    let mut terminal = demo(&[], 80, 24);
    terminal.signal("PIPE");
    terminal.signal("USR2");
    // What USR2 asks for covers the view; a key sent before it is there would be under it.
    terminal.wait_for("Dump of cached node info");
    terminal.send("\x1b");
    terminal.wait_for("? help");
    terminal.send("5");
    terminal.wait_for("Nodes: requested");
    terminal.send("qq");
    assert_eq!(terminal.exit_code(), 0);
}

#[test]
fn a_paste_of_a_megabyte_is_cut_and_the_debugger_goes_on() {
    for prompt in ["", ":", "/"] {
        let mut terminal = demo(&[], 80, 24);
        let start = Instant::now();
        let text = "abcdefghi ".repeat(100_000);
        terminal.send(&format!("{prompt}\x1b[200~{text}\x1b[201~"));
        // The recognized key comes after everything that was pasted.
        std::thread::sleep(Duration::from_millis(50));
        terminal.send("\x1b");
        std::thread::sleep(Duration::from_millis(100));
        terminal.send("5");
        terminal.wait_for("Nodes: requested of allocatable");
        terminal.send("\x03");
        assert_eq!(terminal.exit_code(), 130);
        assert!(start.elapsed() < Duration::from_secs(10), "{prompt:?}: {:?}", start.elapsed());
    }
}

/// Enough pods for a run of all to take long, even in a release build.
fn crowd(dir: &std::path::Path) -> String {
    let mut yaml = String::new();
    for node in 0..40 {
        yaml.push_str(&format!(
            "---\napiVersion: v1\nkind: Node\nmetadata: {{name: node-{node}}}\nstatus: {{allocatable: \
             {{cpu: '1000', memory: 1000Gi, pods: '10000'}}}}\n"
        ));
    }
    for pod in 0..5_000 {
        yaml.push_str(&format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: pod-{pod}, namespace: default}}\nspec: \
             {{containers: [{{name: c, image: i}}]}}\n"
        ));
    }
    let file = dir.join("crowd.yaml");
    std::fs::write(&file, yaml).unwrap();
    file.display().to_string()
}

#[test]
fn a_long_run_is_seen_stopped_and_ended_by_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(kubestep(&["-f", &crowd(dir.path())]), 80, 24);
    terminal.wait_for("active 5000");
    terminal.send("c");
    terminal.wait_for("RUNNING");
    let first = terminal.text();
    terminal.wait("progress", |s| s.contents() != first && s.contents().contains("RUNNING"));
    terminal.send("\x1b");
    terminal.wait_for("stopped");
    terminal.wait_for("PAUSED");
    terminal.send("c");
    terminal.wait_for("RUNNING");
    terminal.signal("TERM");
    assert_eq!(terminal.exit_code(), 143);
    terminal.assert_restored();
}

#[test]
fn resizing_redraws_and_a_tiny_terminal_gets_a_sentence() {
    let mut terminal = demo(&[], 80, 24);
    terminal.send("5");
    terminal.wait_for("Nodes: requested of allocatable");
    terminal.resize(30, 8);
    terminal.wait_for("30×8.");
    for width in (60..=200).step_by(20) {
        terminal.resize(width, 40);
    }
    terminal.wait("the last column of 200", |screen| {
        screen.rows(0, 200).next().is_some_and(|row| row.trim_end().ends_with("PAUSED"))
            && screen.contents().contains("taints")
    });
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}

/// The first line that is reversed over at least half of its width.
fn reversed_line(screen: &vt100::Screen) -> Option<u16> {
    (2..20).find(|y| {
        let reversed = (0..80).filter(|x| screen.cell(*y, *x).is_some_and(|c| c.inverse()));
        reversed.count() > 40
    })
}

fn is_coloured(screen: &vt100::Screen) -> bool {
    let cells = (0..24).flat_map(|y| (0..80).filter_map(move |x| screen.cell(y, x)));
    let mut colours = cells.flat_map(|c| [c.fgcolor(), c.bgcolor()]);
    colours.any(|colour| colour != vt100::Color::Default)
}

#[test]
fn no_color_keeps_the_selection_and_drops_every_colour() {
    let mut command = kubestep(&["demo"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command, 80, 24);
    terminal.wait("a reversed line", |screen| reversed_line(screen).is_some());
    let first = terminal.screen(reversed_line).unwrap();
    assert!(!terminal.screen(is_coloured));
    terminal.send("j");
    terminal.wait("the selection one lower", |screen| reversed_line(screen) == Some(first + 1));
}

#[test]
fn colours_are_used_where_there_are_some_and_on_request() {
    assert!(demo(&[], 80, 24).screen(is_coloured));
    assert!(!demo(&["--color", "never"], 80, 24).screen(is_coloured));
    let mut command = kubestep(&["demo", "--color", "always"]);
    command.env("NO_COLOR", "1");
    let terminal = Terminal::start(command, 80, 24);
    terminal.wait_for("? help");
    assert!(terminal.screen(is_coloured));
}

#[test]
fn ascii_sends_no_byte_beyond_it() {
    let mut terminal = demo(&["--ascii"], 80, 24);
    terminal.send("ssssss3d");
    terminal.wait_for("+-");
    assert!(terminal.bytes().is_ascii());
}

#[test]
fn themes_change_what_is_drawn() {
    let mut terminal = demo(&[], 80, 24);
    let background = |s: &vt100::Screen| s.cell(3, 0).map(|c| c.bgcolor());
    let tab = |s: &vt100::Screen| s.cell(0, 20).map(|c| c.bgcolor());
    let before = terminal.screen(|s| (background(s), tab(s)));
    terminal.send(":theme high-contrast\r");
    terminal.wait("another background", |s| (background(s), tab(s)) != before);
    terminal.wait_for("theme high-contrast");
}

#[test]
fn without_a_terminal_it_says_what_prints_the_same() {
    let program = assert_cmd::cargo::cargo_bin("kubestep");
    let output = std::process::Command::new(program).args(["demo", "tainted"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("kubestep run"));
}

#[test]
fn a_terminal_without_a_cursor_gets_the_report() {
    let mut command = kubestep(&["demo", "tainted"]);
    command.env("TERM", "dumb");
    let mut terminal = Terminal::start(command, 80, 24);
    assert_eq!(terminal.exit_code(), 1);
    assert!(!terminal.bytes().contains(&0x1b));
    assert!(terminal.text().contains("nodes are available"));
}

#[test]
fn hostile_text_from_a_file_stays_text() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cluster.yaml");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: default, labels: \
               {note: \"\\e]0;owned\\a\\e[2J\\u202e\"}}\nspec:\n  schedulerName: \"\\e]0;owned\\a\"\n  \
               containers: [{name: c, image: i}]\n";
    std::fs::write(&file, pod).unwrap();
    // With a theme the terminal is not queried, so such a control sequence is not ours.
    let mut terminal =
        Terminal::start(kubestep(&["-f", file.to_str().unwrap(), "--theme", "dark"]), 200, 40);
    terminal.wait_for("? help");
    terminal.send("6d");
    terminal.wait_for("\\u{1b}]0;owned");
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    assert!(!bytes.contains("\x1b]0;") && !bytes.contains('\u{202e}') && !bytes.contains('\x07'));
}

#[test]
fn suspended_it_leaves_the_shell_its_terminal_and_returns() {
    let mut shell = CommandBuilder::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]);
    plain_environment(&mut shell);
    shell.env("PS1", "shell> ");
    let mut terminal = Terminal::start(shell, 80, 24);
    terminal.wait_for("shell>");
    terminal.send(&format!("{} demo\r", env!("CARGO_BIN_EXE_kubestep")));
    terminal.wait_for("? help");
    terminal.send("5");
    terminal.wait_for("Nodes: requested");
    terminal.send("\x1a");
    terminal.wait("the shell", |s| !s.alternate_screen() && s.contents().contains("Stopped"));
    assert!(!terminal.screen(|s| s.hide_cursor()));
    terminal.send("fg\r");
    terminal.wait("the view as it was", |s| {
        s.alternate_screen() && s.contents().contains("Nodes: requested")
    });
    terminal.send("q");
    terminal.wait("the shell", |s| !s.alternate_screen());
    terminal.send("echo code $?\r");
    terminal.wait_for("code 0");
}

/// The environment variable of the process that must panic.
const CHILD: &str = "KUBESTEP_TEST_PANIC";

/// Not a test by itself: the process that the next test starts. Takes over the terminal, and panics
/// on another thread while this one keeps drawing.
#[test]
fn child_that_panics_on_a_worker() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let mut screen = kubestep::tui::terminal::TerminalScreen::enter().unwrap();
    let worker = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(300));
        panic!("the worker broke");
    });
    while !worker.is_finished() {
        screen.draw(|frame| frame.render_widget("STILL DRAWING", frame.area())).unwrap();
    }
    std::thread::sleep(Duration::from_secs(5));
}

#[test]
fn a_panic_on_any_thread_restores_the_terminal_and_ends() {
    let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_that_panics_on_a_worker", "--nocapture"]);
    plain_environment(&mut command);
    command.env(CHILD, "1");
    command.env("RUST_BACKTRACE", "0");
    let mut terminal = Terminal::start(command, 80, 24);
    terminal.wait_for("STILL DRAWING");
    assert_eq!(terminal.exit_code(), 101);
    terminal.assert_restored();
    let text = terminal.text();
    assert!(text.contains("the worker broke"), "{text}");
    assert!(!text.contains("STILL DRAWING"), "{text}");
}

#[test]
fn random_keys_and_sizes_leave_a_terminal_that_works() {
    // All single-character keys except those that quit or hand over the terminal.
    let table = kubestep::tui::action::all().flat_map(|spec| spec.keys);
    let single = |key: &&str| key.len() == 1 && !["q", "e", "E"].contains(key);
    let mut keys: Vec<&str> = table.copied().filter(single).collect();
    keys.extend(["\x1b", "\r", "\t", "g", "gc", "gt", "\x04", "\x15", "\x17", "\x07"]);
    for seed in [1_u64, 2] {
        let mut terminal = demo(&[], 80, 24);
        let mut state = seed;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        for _ in 0..150 {
            let key = keys[next(keys.len())];
            terminal.send(key);
            if key == "\x1b" {
                // A key right after Esc would form one escape sequence with it.
                std::thread::sleep(Duration::from_millis(30));
            }
            if next(12) == 0 {
                terminal.resize(1 + next(150) as u16, 1 + next(50) as u16);
            }
        }
        terminal.resize(80, 24);
        std::thread::sleep(Duration::from_millis(100));
        terminal.send("\x03");
        // In a prompt the first one only closes the prompt.
        std::thread::sleep(Duration::from_millis(100));
        terminal.send("\x03");
        assert_eq!(terminal.exit_code(), 130, "seed {seed}");
        terminal.assert_restored();
    }
}

/// A pipe as a file: its reader waits for what the test writes.
fn pipe(dir: &std::path::Path) -> String {
    let path = dir.join("cluster.yaml");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path.display().to_string()
}

const NODE: &[u8] = b"apiVersion: v1\nkind: Node\nmetadata: {name: slow-node}\n";

#[test]
fn slow_input_is_shown_until_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = pipe(dir.path());
    let mut terminal = Terminal::start(kubestep(&["-f", &path]), 80, 24);
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    terminal.wait_for("0 B read, 0 objects");
    terminal.wait_for("q stops and leaves");
    writer.write_all(NODE).unwrap();
    terminal.wait_for("54 B read");
    terminal.resize(100, 30);
    terminal.wait_for("54 B read");
    drop(writer);
    terminal.wait_for("? help");
    terminal.send("5");
    terminal.wait_for("slow-node");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn reading_is_stopped_by_keys_and_signals() {
    for (keys, code) in [("q", 0), ("\x1b", 0), ("\x03", 130), ("TERM", 143)] {
        let dir = tempfile::tempdir().unwrap();
        let path = pipe(dir.path());
        let mut terminal = Terminal::start(kubestep(&["-f", &path]), 80, 24);
        let writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        terminal.wait_for("q stops and leaves");
        match keys {
            "TERM" => terminal.signal(keys),
            keys => terminal.send(keys),
        }
        assert_eq!(terminal.exit_code(), code, "{keys:?}");
        terminal.assert_restored();
        drop(writer);
    }
}

#[test]
fn an_error_in_slow_input_is_reported_on_the_shells_screen() {
    let dir = tempfile::tempdir().unwrap();
    let path = pipe(dir.path());
    let mut terminal = Terminal::start(kubestep(&["-f", &path]), 100, 24);
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    terminal.wait_for("q stops and leaves");
    writer.write_all(b"apiVersion: v1\nkind: Node\nmetadata: {name: 5}\n").unwrap();
    drop(writer);
    assert_eq!(terminal.exit_code(), 2);
    terminal.assert_restored();
    terminal.wait_for("expected a text, got 5");
}

#[test]
fn a_command_says_how_far_reading_is_and_takes_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = pipe(dir.path());
    let mut terminal = Terminal::start(kubestep(&["run", "-f", &path]), 80, 24);
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all(NODE).unwrap();
    terminal.wait_for("54 B read, 0 objects");
    drop(writer);
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.text().contains("B read"), "{}", terminal.text());
}

#[test]
fn an_object_is_edited_in_the_editor_until_it_is_right() {
    let folder = std::env::temp_dir().join(format!("kubestep-editor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("editor");
    // It makes a mistake in the first call and corrects it in the second.
    let text = "#!/bin/sh\nif grep -q 'could not be done' \"$1\"; then\n  cp \"$1\" seen\n  sed -i \
                's/unschedulable: perhaps/unschedulable: false/' \"$1\"\nelse\n  sed -i \
                's/unschedulable: true/unschedulable: perhaps/' \"$1\"\nfi\n";
    std::fs::write(&script, text).unwrap();
    let mut command = kubestep(&["demo", "cordoned"]);
    command.env("EDITOR", format!("sh {}", script.display()));
    command.env_remove("VISUAL");
    command.cwd(&folder);
    let mut terminal = Terminal::start(command, 100, 30);
    terminal.wait_for("? help");
    terminal.send("5");
    terminal.wait_for("Nodes");
    terminal.send("e");
    terminal.wait_for("in branch what-if-1");
    let seen = std::fs::read_to_string(folder.join("seen")).unwrap();
    assert!(seen.contains("spec.unschedulable"), "{seen}");
    assert!(seen.starts_with("# This could not be done:"), "{seen}");
    terminal.send("c");
    terminal.wait_for("IDLE");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The responses of a terminal: dark text on white, and its capabilities.
const LIGHT: &str = "\x1b]10;rgb:0000/0000/0000\x1b\\\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62;c";

fn ink(terminal: &Terminal) -> Option<vt100::Color> {
    terminal.screen(|screen| screen.cell(3, 2).map(|cell| cell.fgcolor()))
}

/// Starts the program in a terminal that responds to queries. The responses are in its buffer before
/// the program asks, so that they are in time on a busy machine too.
fn in_a_light_terminal() -> Terminal {
    let mut terminal = Terminal::start(kubestep(&["demo"]), 80, 24);
    terminal.send(LIGHT);
    terminal.wait_for("? help");
    assert!(terminal.bytes().windows(5).any(|window| window == b"\x1b]11;"), "it does not ask");
    terminal
}

#[test]
fn a_terminal_that_says_it_is_light_gets_the_light_theme() {
    let light = ink(&demo(&["--theme", "light"], 80, 24));
    assert_ne!(light, ink(&demo(&["--theme", "dark"], 80, 24)));
    assert_eq!(ink(&in_a_light_terminal()), light);
}

#[test]
fn a_terminal_that_does_not_answer_is_dark_and_not_waited_for() {
    let terminal = demo(&[], 80, 24);
    assert_eq!(ink(&terminal), ink(&demo(&["--theme", "dark"], 80, 24)));
    // With a chosen theme or without colors, the terminal is not queried.
    for args in [["--theme", "dark"], ["--color", "never"]] {
        let bytes = demo(&args, 80, 24).bytes();
        assert!(!bytes.windows(5).any(|window| window == b"\x1b]11;"), "{args:?}");
    }
}

#[test]
fn an_answer_that_comes_too_late_is_not_typed() {
    let mut terminal = demo(&[], 80, 24);
    terminal.send(LIGHT);
    std::thread::sleep(Duration::from_millis(300));
    terminal.wait_for("Queues: active");
    terminal.send("5");
    terminal.wait_for("Nodes: requested");
    assert!(!terminal.text().contains("nothing is bound to"), "{}", terminal.text());
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}
