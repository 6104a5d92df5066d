//! `/statusz` and `/flagz`: versions and flags of the process, as text for people and as objects of
//! `config.k8s.io`.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/server/statusz` and `flagz`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{SCHEDULER, SCHEDULER_MINOR};

use super::accept::{Media, NegotiatedForm, RequestedType, negotiate};
use super::{JSON, TEXT, plain};

/// The name of the component, as in kube-scheduler's own pages.
const COMPONENT: &str = "kube-scheduler";
const GROUP: &str = "config.k8s.io";
/// The versions of the objects. The first is deprecated.
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];
const GO_VERSION: &str = concat!("none: this is kubestep ", env!("CARGO_PKG_VERSION"));
/// The tag that marks data as CBOR.
const SELF_DESCRIBED: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// Which pages exist and in which media types: feature gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageGates {
    /// Gate `ComponentStatusz`: `/statusz` exists.
    pub statusz: bool,
    /// Gate `ComponentFlagz`: `/flagz` exists.
    pub flagz: bool,
    /// Gate `CBORServingAndStorage`: CBOR is served, too.
    pub cbor: bool,
}

/// What the pages show.
pub struct Zpages {
    gates: PageGates,
    flags: BTreeMap<String, String>,
    started: (Timestamp, Instant),
}

#[derive(Clone, Copy)]
enum ZpageKind {
    Statusz,
    Flagz,
}

impl Zpages {
    /// The pages of a process that starts now, with these values of flags.
    pub fn new(gates: PageGates, flags: BTreeMap<String, String>) -> Zpages {
        Zpages { gates, flags, started: (Timestamp::now(), Instant::now()) }
    }

    /// The paths of these pages that `/statusz` lists; as upstream, without `/statusz` itself.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.gates.flagz.then(|| "/flagz".to_owned()).into_iter()
    }

    /// The page of a path, in the media type that the headers ask for; `None`: there is no such
    /// page. `listed` holds the paths that the port serves.
    pub fn answer(
        &self,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        listed: impl Fn() -> Vec<String>,
    ) -> Option<Response<Full<Bytes>>> {
        let page = match path {
            "/statusz" if self.gates.statusz => ZpageKind::Statusz,
            "/flagz" if self.gates.flagz => ZpageKind::Flagz,
            _ => return None,
        };
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let accept = text(header::ACCEPT).unwrap_or_default();
        let object = |target| self.object(page, target, &listed());
        let as_text = || plain(StatusCode::OK, TEXT, self.text(page, &listed()).into_bytes());
        if accept.trim().is_empty() {
            return Some(as_text());
        }
        let chosen = negotiate(accept, &self.offered(), |media, target| page.allows(media, target));
        let pretty = is_for_people(query, text(header::USER_AGENT).unwrap_or_default());
        Some(match chosen {
            None => self.not_acceptable(accept, pretty),
            Some(NegotiatedForm { target: Some(target), media, pretty: wanted }) => {
                structured(media, target, &object(target), pretty || wanted)
            }
            Some(NegotiatedForm { target: None, .. }) => as_text(),
        })
    }

    /// The media types on offer, in the order in which `*` selects them.
    fn offered(&self) -> Vec<Media> {
        let cbor = self.gates.cbor.then_some(Media::Cbor);
        [Media::Json, Media::Yaml, Media::Text].into_iter().chain(cbor).collect()
    }

    fn object(&self, page: ZpageKind, target: RequestedType<'_>, listed: &[String]) -> Value {
        let mut object = json!({
            "kind": target.kind,
            "apiVersion": format!("{GROUP}/{}", target.version),
            "metadata": {"name": COMPONENT},
        });
        let (started, since) = self.started;
        let more = match page {
            ZpageKind::Statusz => json!({
                "startTime": started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                "uptimeSeconds": since.elapsed().as_secs(),
                "goVersion": GO_VERSION,
                "binaryVersion": SCHEDULER,
                "emulationVersion": SCHEDULER_MINOR,
                "paths": folders(listed),
            }),
            ZpageKind::Flagz => json!({ "flags": self.flags }),
        };
        if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
            object.extend(more);
        }
        object
    }

    fn text(&self, page: ZpageKind, listed: &[String]) -> String {
        let name = page.name().to_lowercase();
        let head = format!(
            "\n{COMPONENT} {name}\nWarning: This endpoint is not meant to be machine parseable, \
             has no formatting compatibility guarantees and is for debugging purposes only.\n"
        );
        let (started, since) = self.started;
        let up = since.elapsed().as_secs();
        match page {
            ZpageKind::Statusz => format!(
                "{head}\nStarted: {}\nUp: {} hr {:02} min {:02} sec\nGo version: {GO_VERSION}\n\
                 Binary version: {SCHEDULER}\nEmulation version: {SCHEDULER_MINOR}\nPaths: {}\n",
                started.strftime("%a %b %e %H:%M:%S UTC %Y"),
                up / 3_600,
                up / 60 % 60,
                up % 60,
                folders(listed).join(" "),
            ),
            ZpageKind::Flagz => {
                let lines = self.flags.iter().map(|(name, value)| format!("{name}={value}\n"));
                head + &lines.collect::<String>()
            }
        }
    }

    fn not_acceptable(&self, accept: &str, pretty: bool) -> Response<Full<Bytes>> {
        let code = StatusCode::NOT_ACCEPTABLE;
        let names: Vec<String> = self.offered().into_iter().map(Media::name).collect();
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!(
                "only the following media types are accepted: {}",
                names.join(", ")
            ),
            "reason": "NotAcceptable", "code": code.as_u16(),
        });
        // An error is an object of its own and cannot be requested as another type.
        match negotiate(accept, &self.offered(), |_, target| target.is_none()) {
            Some(NegotiatedForm { media: media @ (Media::Yaml | Media::Cbor), .. }) => {
                reply(code, &media.name(), encode(media, &status, pretty))
            }
            Some(_) => plain(code, JSON, encode(Media::Json, &status, pretty)),
            None => plain(code, JSON, encode(Media::Json, &status, true)),
        }
    }
}

impl ZpageKind {
    fn name(self) -> &'static str {
        match self {
            ZpageKind::Statusz => "Statusz",
            ZpageKind::Flagz => "Flagz",
        }
    }

    /// Text is not an object; every other media type must be requested with a known object type.
    fn allows(self, media: Media, target: Option<RequestedType<'_>>) -> bool {
        let is_known = |target: RequestedType<'_>| {
            target.group == GROUP
                && target.kind == self.name()
                && VERSIONS.contains(&target.version)
        };
        match media {
            Media::Text => target.is_none(),
            _ => target.is_some_and(is_known),
        }
    }
}

fn structured(
    media: Media,
    target: RequestedType<'_>,
    object: &Value,
    pretty: bool,
) -> Response<Full<Bytes>> {
    let RequestedType { group, version, kind } = target;
    let content = format!("{};g={group};v={version};as={kind}", media.name());
    let mut response = reply(StatusCode::OK, &content, encode(media, object, pretty));
    let warning = format!(
        "299 - \"This version of the {} endpoint is deprecated. Please use a newer version.\"",
        kind.to_lowercase()
    );
    if let (true, Ok(warning)) = (version == VERSIONS[0], HeaderValue::from_str(&warning)) {
        response.headers_mut().insert(header::WARNING, warning);
    }
    response
}

fn reply(code: StatusCode, content: &str, body: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = plain(code, TEXT, body);
    if let Ok(content) = HeaderValue::from_str(content) {
        response.headers_mut().insert(header::CONTENT_TYPE, content);
    }
    response
}

fn encode(media: Media, object: &Value, pretty: bool) -> Vec<u8> {
    match media {
        Media::Yaml => serde_yaml::to_string(object).unwrap_or_default().into_bytes(),
        Media::Cbor => {
            let mut bytes = SELF_DESCRIBED.to_vec();
            // Writing to memory does not fail.
            let _written = ciborium::into_writer(object, &mut bytes);
            bytes
        }
        Media::Json | Media::Text if pretty => format!("{object:#}").into_bytes(),
        Media::Json | Media::Text => format!("{object}\n").into_bytes(),
    }
}

/// Whether to indent JSON: it is requested, or the caller is an interactive tool.
fn is_for_people(query: &str, agent: &str) -> bool {
    let asked = query.split('&').find_map(|part| part.strip_prefix("pretty="));
    match asked.filter(|value| !value.is_empty()) {
        Some(value) => ["1", "t", "T", "true", "TRUE", "True"].contains(&value),
        None => ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| agent.starts_with(tool)),
    }
}

/// The first parts of paths, sorted.
fn folders(listed: &[String]) -> Vec<String> {
    let first = listed.iter().filter_map(|path| path.split('/').nth(1));
    let set: BTreeSet<&str> = first.filter(|part| !part.is_empty()).collect();
    set.into_iter().map(|part| format!("/{part}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use tokio::runtime::Builder;

    /// Status code, content type, whether there is a warning, and body of an answer.
    fn ask(cbor: bool, path: &str, accept: &str) -> (u16, String, bool, Vec<u8>) {
        let gates = PageGates { statusz: true, flagz: true, cbor };
        let flags = BTreeMap::from([("leader-elect".to_owned(), "true".to_owned())]);
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
        let listed = || ["/readyz/shutdown", "/readyz", "/metrics"].map(str::to_owned).to_vec();
        let answer = Zpages::new(gates, flags).answer(path, "", &headers, listed).unwrap();
        let content = answer.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let warns = answer.headers().contains_key(header::WARNING);
        let code = answer.status().as_u16();
        let runtime = Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        (code, content, warns, body.to_vec())
    }

    const JSON_OF: &str = "application/json;v=v1beta1;g=config.k8s.io;as=";

    #[test]
    fn objects_have_the_fields_of_their_version() {
        let (code, content, warns, body) = ask(false, "/statusz", &format!("{JSON_OF}Statusz"));
        assert_eq!((code, warns), (200, false));
        assert_eq!(content, "application/json;g=config.k8s.io;v=v1beta1;as=Statusz");
        let object: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(object["kind"], "Statusz");
        assert_eq!(object["apiVersion"], "config.k8s.io/v1beta1");
        assert_eq!(object["metadata"]["name"], "kube-scheduler");
        assert_eq!(object["binaryVersion"], "1.36.2");
        assert_eq!(object["emulationVersion"], "1.36");
        assert_eq!(object["paths"], json!(["/metrics", "/readyz"]));
        assert!(object["startTime"].as_str().unwrap().ends_with('Z'), "{object}");
        let (_, _, _, body) = ask(false, "/flagz", &format!("{JSON_OF}Flagz"));
        let object: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(object["flags"], json!({"leader-elect": "true"}));
    }

    #[test]
    fn an_old_version_is_served_with_a_warning() {
        let old = "application/json;v=v1alpha1;g=config.k8s.io;as=Flagz";
        let (code, _, warns, body) = ask(false, "/flagz", &format!("{old},{JSON_OF}Flagz"));
        let object: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(object["apiVersion"], "config.k8s.io/v1alpha1");
        assert_eq!((code, warns), (200, true));
        let (_, _, warns, _) = ask(false, "/flagz", &format!("{JSON_OF}Flagz,{old}"));
        assert!(!warns);
    }

    #[test]
    fn text_is_given_unless_an_object_is_asked_for() {
        let unknown = "application/json;v=foo;g=config.k8s.io;as=Statusz,*/*";
        for accept in ["", "text/plain", "*/*", unknown] {
            let (code, content, _, body) = ask(false, "/statusz", accept);
            assert_eq!((code, content.as_str()), (200, TEXT), "{accept}");
            let text = String::from_utf8(body).unwrap();
            assert!(text.starts_with("\nkube-scheduler statusz\nWarning: This endpoint"), "{text}");
            assert!(text.contains("\nUp: 0 hr 00 min 0"), "{text}");
            assert!(text.ends_with("\nPaths: /metrics /readyz\n"), "{text}");
        }
        let text = String::from_utf8(ask(false, "/flagz", "").3).unwrap();
        assert!(text.ends_with("purposes only.\nleader-elect=true\n"), "{text}");
    }

    #[test]
    fn what_is_not_offered_is_not_acceptable() {
        let cbor = "application/cbor;v=v1beta1;g=config.k8s.io;as=Statusz";
        let no_kind = "application/json;v=v1beta1;g=config.k8s.io";
        for accept in ["application/xml", "application/json", no_kind, cbor] {
            let (code, content, _, body) = ask(false, "/statusz", accept);
            assert_eq!((code, content.as_str()), (406, JSON), "{accept}");
            let status: Value = serde_json::from_slice(&body).unwrap();
            let accepted = "only the following media types are accepted: application/json, \
                            application/yaml, text/plain";
            assert_eq!(status["message"], accepted);
            assert_eq!(status["reason"], "NotAcceptable");
        }
        let (code, content, _, body) = ask(false, "/statusz", "application/yaml");
        assert_eq!((code, content.as_str()), (406, "application/yaml"));
        assert!(String::from_utf8(body).unwrap().contains("\nreason: NotAcceptable\n"));
    }

    #[test]
    fn yaml_and_cbor_say_the_same_as_json() {
        let as_flagz = "v=v1beta1;g=config.k8s.io;as=Flagz";
        let (_, _, _, json) = ask(true, "/flagz", &format!("application/json;{as_flagz}"));
        let expected: Value = serde_json::from_slice(&json).unwrap();
        let (_, _, _, yaml) = ask(true, "/flagz", &format!("application/yaml;{as_flagz}"));
        assert_eq!(serde_yaml::from_slice::<Value>(&yaml).unwrap(), expected);
        let (code, content, _, cbor) = ask(true, "/flagz", &format!("application/cbor;{as_flagz}"));
        assert_eq!((code, &content[..16]), (200, "application/cbor"));
        assert_eq!(cbor[..3], SELF_DESCRIBED);
        assert_eq!(ciborium::from_reader::<Value, _>(&cbor[3..]).unwrap(), expected);
    }

    #[test]
    fn json_is_laid_out_for_people() {
        assert!(is_for_people("", "curl/8.0") && is_for_people("pretty=true", "Go-http-client"));
        assert!(!is_for_people("pretty=0", "curl/8.0") && !is_for_people("", "Go-http-client"));
    }

    #[test]
    fn a_page_whose_gate_is_off_is_not_there() {
        let gates = PageGates { statusz: false, flagz: false, cbor: false };
        let zpages = Zpages::new(gates, BTreeMap::new());
        let answer = |path| zpages.answer(path, "", &HeaderMap::new(), Vec::new).is_some();
        assert!(!answer("/statusz") && !answer("/flagz"));
        assert_eq!(zpages.paths().count(), 0);
    }
}
