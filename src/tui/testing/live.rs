//! Stories over a real session: what the keys ask for is done, as in the program.

use std::time::Duration;

use futures::FutureExt as _;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::{app, golden, lines_of, parse_keys};
use crate::tui::action::Key;
use crate::tui::app::{App, Effect};
use crate::tui::color::Depth;
use crate::tui::driver::Driver;
use crate::tui::glyph::Charset;
use crate::tui::render::render;
use crate::tui::widget::status_line::Severity;
use kubestep_api::Object;
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_live::InteractiveScheduler;
use kubestep_live::replay::replay;
use kubestep_live::scheduling::stand_in::StandIn;
use kubestep_source::Filter;
use kubestep_source::fixtures;

/// The interface on a session.
pub struct Live {
    pub app: App,
    pub driver: Driver,
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

/// The same where the API server is elsewhere.
fn remote_session(cluster: &str) -> Session {
    Session::new(world(read(cluster), "", World::write_elsewhere))
}

fn read(text: &str) -> kubestep_source::Input {
    kubestep_source::read_text("test", text.into(), &Filter::default()).unwrap()
}

fn world(read: kubestep_source::Input, gates: &str, prepare: fn(&mut World)) -> World {
    let written = read.captured.feature_gates.as_deref().unwrap_or(gates);
    let features = FeatureGates::parse(written).unwrap();
    let registry = kubestep_plugins::registry();
    let text = read.scheduler_config.as_ref().map(|found| found.text.as_str());
    let resolved = config::resolve(text, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&resolved, features, &registry).unwrap();
    prepare(&mut world);
    kubestep_cluster::load(&mut world, read.objects.into_iter().map(|loaded| loaded.object));
    world
}

impl Live {
    /// A built-in story at 80×24.
    pub fn demo(name: &str) -> Live {
        Live::new(session(fixtures::find(name).unwrap().cluster), (80, 24))
    }

    /// A built-in story on a screen where whole sentences fit.
    pub fn wide(name: &str) -> Live {
        Live::new(session(fixtures::find(name).unwrap().cluster), (200, 30))
    }

    /// A recording at its beginning, as it is opened from a file.
    pub fn recording(text: &str, size: (u16, u16)) -> Live {
        let mut read = read(text);
        read.begin();
        let recording = read.recording.take().unwrap();
        let mut session = Session::new(world(read, "", World::note_writes));
        let changes = recording.until(None);
        let compared = replay(&mut session, changes, recording.ended_at, |_| {});
        session.go_to_stop(0);
        let start = session.now();
        let mut live = Live::new(session, size);
        let decisions = compared.into_iter().map(|compared| compared.decision).collect();
        live.driver.play_back(start, decisions);
        live.draw();
        live
    }

    /// The terminal has another size.
    pub fn resized(mut self, width: u16, height: u16) -> Live {
        self.terminal.backend_mut().resize(width, height);
        self.app.resize(width, height);
        self.draw();
        self
    }

    pub fn new(session: Session, size: (u16, u16)) -> Live {
        let mut app = app(size, "dark", Depth::Rgb, Charset::Unicode);
        app.start();
        let terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        let mut live = Live { app, driver: Driver::new(session, "test".into()), terminal };
        live.draw();
        live
    }

    /// Types, does what the keys ask for, and finishes long runs.
    pub fn keys(self, keys: &str) -> Live {
        self.type_keys(keys, true)
    }

    /// The same, without waiting for a long way into the past.
    pub fn keys_at_once(self, keys: &str) -> Live {
        self.type_keys(keys, false)
    }

    fn finish_work(&mut self, waits: bool) {
        self.driver.model(self.app.view());
        while waits && self.driver.is_working() {
            self.driver.work_slice(Duration::from_millis(5));
            self.driver.model(self.app.view());
        }
    }

    fn finish_search(&mut self, waits: bool) {
        while waits && self.driver.is_searching() {
            std::thread::sleep(Duration::from_millis(1));
            if let Some(done) = self.driver.search_tick() {
                self.app.done_searching(done);
            }
        }
    }

    /// Types so fast that a long run, if one begins, does not get to its end.
    pub fn keys_in_a_hurry(mut self, keys: &str) -> Live {
        parse_keys(keys).into_iter().for_each(|key| self.press(key));
        self
    }

    fn press(&mut self, key: Key) {
        let model = self.driver.model(self.app.view());
        let effect = self.app.key(key, model);
        if !self.app.is_playing() {
            self.driver.pause();
        }
        if !self.app.is_searching() {
            self.driver.stop_search();
        }
        if let Effect::Session(request) = effect {
            let done = self.driver.perform(&request);
            self.app.done(done);
        }
    }

    fn type_keys(mut self, keys: &str, waits: bool) -> Live {
        for key in parse_keys(keys) {
            self.press(key);
            self.finish_work(waits);
            self.finish_search(waits);
            while self.app.is_running() {
                if let Some(done) = self.driver.run_slice(Duration::from_millis(5)) {
                    self.app.set_running(false);
                    self.app.done(done);
                }
            }
            self.draw();
        }
        self
    }

    /// The interface on a scheduler that decides for real, in a cluster written as YAML.
    pub fn real(cluster: &str) -> (Live, StandIn) {
        Live::real_with(cluster, false)
    }

    /// The same, where the server only tries.
    pub fn real_with(cluster: &str, dry_run: bool) -> (Live, StandIn) {
        let mut session = remote_session(cluster);
        session.act(None);
        let world = session.world();
        let pods = world.api().objects().pods.values().cloned().map(Object::Pod);
        let nodes = world.api().nodes().cloned().map(Object::Node);
        let server = StandIn::new(world.now(), pods.chain(nodes));
        let about = ("lab".to_owned(), dry_run);
        let attended = InteractiveScheduler::new(
            Box::new(server.clone()),
            &session,
            about,
            Box::new(|_, _| {}),
        );
        let mut live = Live::new(session, (160, 30));
        live.driver.attend(attended);
        (live.turn(), server)
    }

    /// What the event loop does beside keys: time, news, and cycles that run by themselves.
    pub fn turn(mut self) -> Live {
        loop {
            self.driver.live_tick();
            let notices = self.driver.take_unsaid();
            notices.into_iter().for_each(|notice| self.app.say(Severity::Warning, notice.text));
            let arrival = match self.driver.follows() {
                true => self.driver.next_arrival().now_or_never(),
                false => None,
            };
            if let Some(arrival) = arrival {
                let notices = self.driver.take_in(arrival);
                notices.into_iter().for_each(|notice| self.app.say(Severity::Warning, notice.text));
                continue;
            }
            let before = self.driver.steps_done();
            let (_, done) = self.driver.live_slice(Duration::from_millis(5), self.app.is_playing());
            done.into_iter().for_each(|done| self.app.done(done));
            if self.driver.steps_done() == before {
                break;
            }
        }
        self.draw();
        self
    }

    /// Lets time pass, as the event loop does while playing.
    pub fn play(mut self, millis: u64) -> Live {
        for _ in 0..millis / 50 {
            if self.app.is_playing()
                && let Some(words) = self.driver.play(self.app.speed(), Duration::from_millis(50))
            {
                self.app.done_playing(words);
            }
            self.draw();
        }
        self
    }

    pub fn draw(&mut self) -> Buffer {
        self.app.sync(self.driver.model(self.app.view()));
        let model = self.driver.model(self.app.view());
        let app = &mut self.app;
        self.terminal.draw(|frame| render(frame, app, model)).unwrap();
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
