//! The terminal interface.
//!
//! State, update and view are apart. `app::App` holds what only the interface knows (view, selection, filter,
//! prompt, windows) and nothing of the session. `driver::Driver` does a `command::Command` with the session and
//! keeps the `model::Model`, which the views draw. `interface::Interface` has both and takes turns: an input,
//! what it leads to, one refresh. `event_loop` feeds it from a terminal.
//!
//! Modules import downwards only: widgets and text; the model; commands; views; the app; actions, which are the
//! table of everything a key or a `:` command does; the driver; the interface; the event loop.

pub mod action;
pub mod action_error;
pub mod app;
pub mod background;
pub mod color;
pub mod command;
pub mod command_result;
pub mod compare;
pub mod data_source;
pub mod driver;
mod edit_forms;
mod editor;
pub mod event_loop;
pub mod filter;
pub mod glyph;
pub mod interface;
pub mod key;
pub mod layout;
pub mod lines;
pub mod loading;
pub mod messages;
pub mod model;
pub mod names;
pub mod offscreen;
pub mod prompt;
pub mod render;
pub mod sanitize;
pub mod screenshot;
pub mod settings;
pub mod signals;
pub mod speed;
pub mod terminal;
#[cfg(test)]
mod testing;
pub mod text;
pub mod theme;
pub mod view;
pub mod widget;
