//! Input and output besides keys: the clipboard, files, the mouse.

use vt100::MouseProtocolMode;

use crate::terminal::{Terminal, kubestep};

fn demo(args: &[&str], folder: &std::path::Path) -> Terminal {
    let mut command = kubestep(&[&["demo"], args].concat());
    command.cwd(folder);
    let terminal = Terminal::start(command, 80, 24);
    terminal.wait_for("? help");
    terminal
}

/// The text that a terminal would copy to its clipboard, still encoded.
fn copied(terminal: &Terminal) -> Option<String> {
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    let (_, rest) = bytes.split_once("\x1b]52;c;")?;
    let end = rest.find(['\x07', '\x1b'])?;
    Some(rest[..end].to_owned())
}

/// The start of a text in base64, as far as it does not depend on the text after it.
fn encoded(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let triples = text.as_bytes().chunks_exact(3);
    let letters = triples.flat_map(|three| {
        let bits = three.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| LETTERS[bits >> shift & 63] as char)
    });
    letters.collect()
}

#[test]
fn a_decision_goes_to_the_terminals_clipboard() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = demo(&["tainted"], folder.path());
    terminal.send("n");
    terminal.wait_for("cycle 1 of default/train");
    terminal.send("3");
    terminal.wait_for("Filter of default/train");
    terminal.send("y");
    terminal.wait_for("bytes (OSC 52)");
    let text = copied(&terminal).unwrap();
    assert!(text.starts_with(&encoded("Filter of default/train in cycle 1\n")), "{text}");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn the_screen_is_saved_as_text_and_as_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = demo(&["tainted"], folder.path());
    terminal.send("n3\x13screen.svg\r");
    terminal.wait_for("saved screen.svg");
    terminal.send(":save screen.txt\r");
    terminal.wait_for("saved screen.txt");
    terminal.send(":save no/such/folder.txt\r");
    terminal.wait_for("cannot save no/such/folder.txt");
    let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (svg, text) = (read("screen.svg"), read("screen.txt"));
    assert!(svg.starts_with("<svg") && svg.contains("Filter of default/train"), "{svg}");
    assert!(text.contains("Filter of default/train in cycle 1"), "{text}");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn the_mouse_is_the_terminals_until_it_is_asked_for_and_after_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = demo(&[], folder.path());
    assert_eq!(terminal.screen(|s| s.mouse_protocol_mode()), MouseProtocolMode::None);
    terminal.send(":mouse on\r");
    terminal.wait("mouse events", |s| s.mouse_protocol_mode() != MouseProtocolMode::None);
    // Press and release on the tab of the nodes.
    terminal.send("\x1b[<0;39;1M\x1b[<0;39;1m");
    terminal.wait_for("Nodes: requested");
    terminal.send("\x1b[<0;5;7M\x1b[<0;5;7m");
    terminal.wait_for("3/6");
    terminal.send("\x1b[<64;5;7M");
    terminal.wait_for("1/6");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn comments_in_a_file_of_breakpoints_outlive_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("breaks.yaml");
    std::fs::write(&file, "# Of our team.\nbreakpoints:\n# The trainer.\n- break: pod:train\n")
        .unwrap();
    let mut terminal = demo(&["tainted", "--breakpoints", "breaks.yaml"], folder.path());
    terminal.send(":break on:tie\r");
    terminal.wait_for("breakpoint 2");
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text,
        "# Of our team.\nbreakpoints:\n# The trainer.\n- break: pod:train\n- break: on:tie\n"
    );
}

#[test]
fn keys_typed_in_one_go_are_done_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = demo(&["tainted"], folder.path());
    terminal.send("c:what-if untaint node gpu-0 dedicated:NoSchedule\rcD");
    terminal.wait_for("What differs from original in what-if-1");
    terminal.wait_for("default/train: unschedulable");
    terminal.wait_for("chosen: no node → gpu-0");
    terminal.send("\x1b");
    terminal.wait("no window", |s| !s.contents().contains("What differs"));
    terminal.send("q");
    assert_eq!(terminal.exit_code(), 0);
}
