//! Stories over a real session: what the keys ask for is done, as in the program.

use std::time::Duration;

use futures::FutureExt as _;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::{appearance, golden, lines_of, parse_keys};
use crate::tui::action::Keymap;
use crate::tui::app::Effect;
use crate::tui::color::ColorDepth;
use crate::tui::glyph::Charset;
use crate::tui::interface::Interface;
use crate::tui::widget::status_line::Severity;
use kubestep_api::Object;
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::{FeatureGates, UnknownPlugins};
use kubestep_debug::Session;
use kubestep_live::InteractiveScheduler;
use kubestep_live::replay::replay;
use kubestep_live::scheduling::stand_in::StandIn;
use kubestep_source::Filter;
use kubestep_source::fixtures;

/// How long a slice of work takes.
const SLICE: Duration = Duration::from_millis(5);

/// The interface on a session.
pub struct LiveInterface {
    pub interface: Interface,
    terminal: Terminal<TestBackend>,
}

/// A session on a cluster written as YAML.
pub fn session(cluster: &str) -> Session {
    session_with(cluster, "")
}

/// The same with feature gates as the command line takes them, unless the cluster names some.
pub fn session_with(cluster: &str, gates: &str) -> Session {
    Session::new(world(read(cluster), gates, |_| {}))
}

/// The same where the API server has another address.
fn remote_session(cluster: &str) -> Session {
    Session::new(world(read(cluster), "", World::mirror_remote))
}

fn read(text: &str) -> kubestep_source::ReadInput {
    crate::plugins::declare_kinds();
    kubestep_source::read_text("test", text.into(), &Filter::default()).unwrap()
}

fn world(read: kubestep_source::ReadInput, gates: &str, prepare: fn(&mut World)) -> World {
    let written = read.captured.feature_gates.as_deref().unwrap_or(gates);
    let features = FeatureGates::parse(written).unwrap();
    let registry = crate::plugins::registry();
    let text = read.scheduler_config.as_ref().map(|found| found.text.as_str());
    let (plugins, unknown) = (registry.descriptors(), UnknownPlugins::Opaque);
    let resolved = config::resolve_as(text, Vec::new(), &features, &plugins, unknown).unwrap();
    let mut world = World::new(&resolved, features, &registry).unwrap();
    prepare(&mut world);
    world.set_provisioning(read.auxiliary.provisioning);
    world.set_controllers(read.auxiliary.controllers);
    kubestep_cluster::load(&mut world, read.objects.into_iter().map(|loaded| loaded.object));
    world
}

impl LiveInterface {
    /// A built-in story at 80×24.
    pub fn demo(name: &str) -> LiveInterface {
        LiveInterface::new(session(fixtures::find(name).unwrap().cluster), (80, 24))
    }

    /// A built-in story on a screen where whole sentences fit.
    pub fn wide(name: &str) -> LiveInterface {
        LiveInterface::new(session(fixtures::find(name).unwrap().cluster), (200, 30))
    }

    /// A recording at its beginning, as it is opened from a file.
    pub fn recording(text: &str, size: (u16, u16)) -> LiveInterface {
        let mut read = read(text);
        read.begin();
        let recording = read.recording.take().unwrap();
        let mut session = Session::new(world(read, "", World::note_writes));
        let changes = recording.until(None);
        let compared = replay(&mut session, changes, recording.ended_at, |_| {});
        session.go_to_stop(0);
        let start = session.now();
        let mut live = LiveInterface::new(session, size);
        let decisions = compared.into_iter().map(|compared| compared.decision).collect();
        live.interface.driver.play_back(start, decisions);
        live.draw();
        live
    }

    /// The terminal has another size.
    pub fn resized(mut self, width: u16, height: u16) -> LiveInterface {
        self.terminal.backend_mut().resize(width, height);
        self.interface.resize(width, height);
        self.draw();
        self
    }

    /// A built-in story as `kubestep demo` opens it, at 80×24.
    pub fn story(name: &str) -> LiveInterface {
        let story = fixtures::find(name).unwrap();
        LiveInterface::of_source(session(story.cluster), (80, 24), story.source())
    }

    pub fn new(session: Session, size: (u16, u16)) -> LiveInterface {
        LiveInterface::of_source(session, size, "test".into())
    }

    fn of_source(session: Session, size: (u16, u16), source: String) -> LiveInterface {
        let appearance = appearance("dark", ColorDepth::Rgb, Charset::Unicode);
        let keymap = Keymap::default();
        let mut interface = Interface::new(appearance, keymap, session, source).unwrap();
        interface.set_slice(SLICE);
        interface.resize(size.0, size.1);
        interface.app.start();
        let terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        let mut live = LiveInterface { interface, terminal };
        live.draw();
        live
    }

    /// Types, does what the keys ask for, and finishes long runs.
    pub fn keys(self, keys: &str) -> LiveInterface {
        self.type_keys(keys, true)
    }

    /// The same, without waiting for a long way into the past.
    pub fn keys_at_once(self, keys: &str) -> LiveInterface {
        self.type_keys(keys, false)
    }

    /// Types so fast that no slice of a long run is done in between.
    pub fn keys_in_a_hurry(mut self, keys: &str) -> LiveInterface {
        let Interface { app, input, driver, .. } = &mut self.interface;
        for key in parse_keys(keys) {
            if let Effect::Session(command) = input.key(app, key, driver.model()) {
                app.done(driver.perform(&command));
            }
        }
        self
    }

    fn type_keys(mut self, keys: &str, waits: bool) -> LiveInterface {
        for key in parse_keys(keys) {
            self.interface.key(key);
            while self.has_work(waits) {
                std::thread::sleep(Duration::from_millis(u64::from(
                    self.interface.driver.is_searching(),
                )));
                self.interface.work();
            }
            self.draw();
        }
        self
    }

    fn has_work(&self, waits: bool) -> bool {
        let driver = &self.interface.driver;
        self.interface.app.is_running() || waits && (driver.is_working() || driver.is_searching())
    }

    /// The interface on a scheduler that schedules it live, in a cluster written as YAML.
    pub fn scheduling(cluster: &str) -> (LiveInterface, StandIn) {
        LiveInterface::scheduling_with(cluster, false)
    }

    /// The same, where the server only tries.
    pub fn scheduling_with(cluster: &str, dry_run: bool) -> (LiveInterface, StandIn) {
        let mut session = remote_session(cluster);
        session.act(None);
        let world = session.world();
        let pods = world.api().objects().pods.values().cloned().map(Object::Pod);
        let nodes = world.api().nodes().cloned().map(Object::Node);
        let server = StandIn::new(world.now(), pods.chain(nodes));
        let about = ("lab".to_owned(), dry_run);
        let scheduler = InteractiveScheduler::new(
            Box::new(server.clone()),
            &session,
            about,
            Box::new(|_, _| {}),
        );
        let mut live = LiveInterface::new(session, (160, 30));
        live.interface.driver.schedule_for(scheduler);
        (live.turn(), server)
    }

    /// What the event loop does besides keys: time, updates, and cycles that run by themselves.
    pub fn turn(mut self) -> LiveInterface {
        loop {
            self.interface.driver.live_tick();
            let notices = self.interface.driver.take_pending_notices();
            notices
                .into_iter()
                .for_each(|notice| self.interface.app.notify(Severity::Warning, notice.text));
            let arrival = match self.interface.driver.follows() {
                true => self.interface.driver.next_arrival().now_or_never(),
                false => None,
            };
            if let Some(arrival) = arrival {
                let notices = self.interface.driver.take_in(arrival);
                notices
                    .into_iter()
                    .for_each(|notice| self.interface.app.notify(Severity::Warning, notice.text));
                continue;
            }
            let before = self.interface.driver.steps_done();
            let (_, done) = self
                .interface
                .driver
                .live_slice(Duration::from_millis(5), self.interface.app.is_playing());
            done.into_iter().for_each(|done| self.interface.app.done(done));
            if self.interface.driver.steps_done() == before {
                break;
            }
        }
        self.draw();
        self
    }

    /// Lets time pass, as the event loop does while playing.
    pub fn play(mut self, millis: u64) -> LiveInterface {
        for _ in 0..millis / 50 {
            if self.interface.app.is_playing()
                && let Some(words) = self
                    .interface
                    .driver
                    .play(self.interface.app.speed(), Duration::from_millis(50))
            {
                self.interface.app.done_playing(words);
            }
            self.draw();
        }
        self
    }

    pub fn draw(&mut self) -> Buffer {
        self.interface.refresh();
        let interface = &mut self.interface;
        self.terminal.draw(|frame| interface.draw(frame)).unwrap();
        self.terminal.backend().buffer().clone()
    }

    pub fn lines(&mut self) -> Vec<String> {
        lines_of(&self.draw())
    }

    pub fn text(&mut self) -> String {
        self.lines().join("\n")
    }

    /// Compares the frame with `tests/golden/NAME.txt`.
    pub fn golden(&mut self, name: &str) {
        golden(&self.draw(), name);
    }
}
