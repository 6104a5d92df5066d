//! The edits on offer for a row of the scheduler's configuration.

use crate::edit::offers::Offer;
use kubestep_config::ExtensionPoint;
use kubestep_config::rows::{About, Row};

/// The edits for a row, and the name of that row. Loading another configuration is on offer for
/// every row.
pub fn offers(rows: &[Row], at: usize) -> (String, Vec<Offer>) {
    let row = rows.get(at);
    let mut found = match row.map(|row| row.about) {
        Some(About::Plugin(_) | About::OtherPlugin) => of_plugin(rows, at),
        Some(About::Gate(feature)) => {
            let on = row.is_some_and(|row| row.value == "off");
            vec![whole(format!("feature {}={on}", feature.name()))]
        }
        _ => Vec::new(),
    };
    found.push(Offer { words: "config @".into(), missing: "FILE" });
    (row.map_or_else(|| "configuration".into(), |row| row.name.clone()), found)
}

fn whole(words: String) -> Offer {
    Offer { words, missing: "" }
}

fn of_plugin(rows: &[Row], at: usize) -> Vec<Offer> {
    let above = rows.get(..=at).unwrap_or_default();
    let Some(name) = above.last().map(|row| &row.name) else { return Vec::new() };
    let point = above.iter().rev().find_map(|row| match row.about {
        About::Point(point) => Some(point),
        _ => None,
    });
    let profile = above.iter().rev().find_map(|row| row.name.strip_prefix("Profile "));
    let within = profile.map(|profile| format!(" in {profile}")).unwrap_or_default();
    let mut found = Vec::new();
    if point == Some(ExtensionPoint::Score) {
        found.push(Offer { words: format!("weight {name}="), missing: "NUMBER" });
    }
    found.extend(point.map(|point| whole(format!("disable {name} at {point}{within}"))));
    found.push(whole(format!("disable {name}{within}")));
    found
}
