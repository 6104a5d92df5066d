//! Pieces that views and the frame around them are drawn with. They know nothing of the session.

pub mod bar;
pub mod breadcrumbs;
pub mod grid;
pub mod hints;
pub mod paint;
pub mod popup;
pub mod prompt;
pub mod status_line;
pub mod tabs;

pub use paint::Paint;
