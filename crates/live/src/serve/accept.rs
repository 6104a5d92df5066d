//! Content negotiation: the `Accept` header against the media types on offer.
//!
//! Upstream: `NegotiateMediaTypeOptions` in `staging/src/k8s.io/apiserver/pkg/endpoints/handlers/
//! negotiation`, with the header read as `goautoneg` reads it.

/// A form in which a page can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    Json,
    Yaml,
    Text,
    Cbor,
}

/// The object type that a caller requests: `as`, `g` and `v`. Missing parameters are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestedType<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
}

/// What the `Accept` header asks for, as far as it can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiatedForm<'a> {
    pub media: Media,
    pub target: Option<RequestedType<'a>>,
    /// Whether the output is indented for people.
    pub pretty: bool,
}

/// One clause of the header.
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl Media {
    /// The two parts of the media type.
    fn parts(self) -> (&'static str, &'static str) {
        match self {
            Media::Json => ("application", "json"),
            Media::Yaml => ("application", "yaml"),
            Media::Text => ("text", "plain"),
            Media::Cbor => ("application", "cbor"),
        }
    }

    /// The name in headers.
    pub fn name(self) -> String {
        let (kind, subtype) = self.parts();
        format!("{kind}/{subtype}")
    }
}

/// The best media type that is offered and allowed. `None`: none is acceptable.
pub(crate) fn negotiate<'a>(
    header: &'a str,
    offered: &[Media],
    allows: impl Fn(Media, Option<RequestedType<'_>>) -> bool,
) -> Option<NegotiatedForm<'a>> {
    clauses(header).iter().find_map(|clause| {
        let matching = offered.iter().filter(|media| clause.covers(**media));
        matching.copied().find_map(|media| {
            let chosen = clause.options(media)?;
            allows(media, chosen.target).then_some(chosen)
        })
    })
}

impl<'a> Clause<'a> {
    /// Parses a clause; `None`: it is skipped because it names no type.
    fn read(text: &'a str) -> Option<Clause<'a>> {
        let (media, rest) = text.split_once(';').unwrap_or((text, ""));
        let (kind, subtype) = match media.split_once('/') {
            Some((kind, subtype)) if !subtype.is_empty() => (kind.trim(), subtype.trim()),
            _ if media.trim_end_matches('/').trim() == "*" => ("*", "*"),
            _ => return None,
        };
        if subtype.contains('/') {
            return None;
        }
        let pairs = rest.split(';').filter_map(|part| part.split_once('='));
        let pairs = pairs.filter(|(_, value)| !value.is_empty() && !value.contains('='));
        let mut clause = Clause { kind, subtype, quality: 1.0, parameters: Vec::new() };
        for (name, value) in pairs.map(|(name, value)| (name.trim(), value)) {
            match name {
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                _ => clause.parameters.push((name, value.trim())),
            }
        }
        Some(clause)
    }

    /// Whether it takes precedence. A concrete type precedes `*`, regardless of quality.
    fn precedes(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality
            || self.kind != "*" && other.kind == "*"
            || self.subtype != "*" && other.subtype == "*"
    }

    fn covers(&self, media: Media) -> bool {
        let (kind, subtype) = media.parts();
        match (self.kind, self.subtype) {
            ("*", star) => star == "*",
            (own, star) => own == kind && (star == "*" || star == subtype),
        }
    }

    /// The options in its parameters; `None`: they ask for something that no page offers.
    fn options(&self, media: Media) -> Option<NegotiatedForm<'a>> {
        let mut chosen = NegotiatedForm { media, target: None, pretty: false };
        for (name, value) in &self.parameters {
            match *name {
                "as" => chosen.target.get_or_insert_default().kind = value,
                "g" => chosen.target.get_or_insert_default().group = value,
                "v" => chosen.target.get_or_insert_default().version = value,
                "stream" | "sv" => return None,
                "pretty" => chosen.pretty = *value == "1",
                _ => {}
            }
        }
        Some(chosen)
    }
}

fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut sorted: Vec<Clause<'_>> = Vec::new();
    // "Precedes" is not an order: each of two clauses can precede the other. The result is that of
    // Go's insertion sort.
    for clause in header.split(',').filter_map(|part| Clause::read(part.trim())) {
        let after = sorted.iter().rposition(|before| !clause.precedes(before));
        sorted.insert(after.map_or(0, |at| at + 1), clause);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(header: &str) -> Option<NegotiatedForm<'_>> {
        let offered = [Media::Json, Media::Yaml, Media::Text];
        negotiate(header, &offered, |media, target| match media {
            Media::Text => target.is_none(),
            _ => target.is_some_and(|target| target.kind == "Statusz"),
        })
    }

    fn media(header: &str) -> Option<Media> {
        chosen(header).map(|chosen| chosen.media)
    }

    #[test]
    fn the_first_form_that_is_allowed_is_chosen() {
        assert_eq!(media("*/*"), Some(Media::Text));
        assert_eq!(media("*"), Some(Media::Text));
        assert_eq!(media("text/*"), Some(Media::Text));
        assert_eq!(media("application/json"), None);
        assert_eq!(media("application/*;as=Statusz"), Some(Media::Json));
        assert_eq!(media("application/yaml;as=Statusz"), Some(Media::Yaml));
        assert_eq!(media("application/cbor;as=Statusz"), None);
        assert_eq!(media("application/json;as=Flagz,*/*"), Some(Media::Text));
        assert_eq!(media("text/plain;as=Statusz"), None);
        assert_eq!(media("application/json;as=Statusz;stream=watch"), None);
        assert_eq!(media("nonsense, /, a/b/c"), None);
    }

    #[test]
    fn qualities_count_among_types_and_any_type_more_than_a_star() {
        let json = "application/json;as=Statusz";
        assert_eq!(media(&format!("text/plain;q=0.5,{json}")), Some(Media::Json));
        assert_eq!(media(&format!("{json};q=0.5, text/plain")), Some(Media::Text));
        assert_eq!(media(&format!("*/*, {json};q=0.1")), Some(Media::Json));
    }

    #[test]
    fn parameters_name_the_type() {
        let found = chosen("application/json; v=v1 ;g=a.b;as=Statusz;pretty=1;other=2").unwrap();
        let target = RequestedType { group: "a.b", version: "v1", kind: "Statusz" };
        assert_eq!(
            found,
            NegotiatedForm { media: Media::Json, target: Some(target), pretty: true }
        );
    }
}
