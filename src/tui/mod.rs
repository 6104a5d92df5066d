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
mod action_error;
mod app;
pub(crate) mod background;
pub(crate) mod color;
mod command;
mod command_result;
mod compare;
pub(crate) mod data_source;
pub(crate) mod driver;
mod edit_forms;
mod editor;
pub(crate) mod event_loop;
mod filter;
mod glyph;
pub mod interface;
pub mod key;
mod layout;
mod lines;
pub(crate) mod loading;
mod messages;
mod model;
mod names;
pub mod offscreen;
mod pod_sign;
mod prompt;
mod render;
mod sanitize;
pub(crate) mod screenshot;
pub mod settings;
pub(crate) mod signals;
pub(crate) mod speed;
pub mod terminal;
#[cfg(test)]
mod testing;
mod text;
pub(crate) mod theme;
pub(crate) mod view;
mod view_id;
mod widget;
