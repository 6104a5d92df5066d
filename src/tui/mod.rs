//! The terminal interface.
//!
//! State, update and view are apart: `app::App` holds what only the interface knows (which view, selection,
//! filter, prompt) and is the one place where that changes; views draw a `model::Model`, an immutable
//! picture of the session. Everything a key or a `:` command can do is a row of one table (`action`), from
//! which key lookup, hints, help, completion and the manual are made.

pub mod action;
pub mod amount;
pub mod app;
pub mod background;
pub mod behind;
pub mod color;
pub mod command;
pub mod compare;
pub mod driver;
mod editor;
pub mod filter;
pub mod glyph;
pub mod layout;
pub mod lines;
pub mod loading;
pub mod model;
pub mod names;
pub mod offscreen;
pub mod paths;
pub mod picture;
pub mod prompt;
pub mod render;
pub mod run;
pub mod sanitize;
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
