//! The present objects of one kind, listed and decoded page by page: the whole text of a large list
//! is never in memory.

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use crate::backoff::{Backoff, EndedStream};
use crate::failure::RequestFailure;
use crate::kinds::ReadKind;
use crate::link::Link;
use kubestep_api::decode::{DecodeError, decode_item};
use kubestep_api::{Kind, Object, admission};

/// `limit` of list requests, as client-go's pager has it.
const PAGE: usize = 500;
/// How often a page is requested before its list fails.
pub const TRIES: u32 = 4;
/// How often a list whose continuation has expired is restarted, before it is requested as a whole.
const RESTARTS: u32 = 3;

/// A kind, and the namespace that a list or watch of it covers.
#[derive(Clone, Debug)]
pub struct ListScope {
    /// The kind, with the versions it is read in.
    pub row: &'static ReadKind,
    /// The namespace, `None` for all.
    pub namespace: Option<String>,
}

/// All pages of a list.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The API version it was listed in.
    pub version: &'static str,
    /// The resource version to watch from.
    pub resource_version: String,
    /// The objects of all pages, as the server sorts them.
    pub objects: Vec<Object>,
    /// Objects that could not be read: name and reason.
    pub unreadable: Vec<String>,
}

/// A page as the server sends it.
#[derive(Deserialize)]
struct ListPage<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

impl ListScope {
    /// `pods in shop`, `nodes`.
    pub fn what(&self) -> String {
        let plural = match self.row.kind {
            Kind::Custom(kind) => kind.full_name(),
            kind => kind.plural().to_owned(),
        };
        match &self.namespace {
            Some(namespace) => format!("{plural} in {namespace}"),
            None => plural,
        }
    }

    /// Lists in the first version that the server serves. The first page is requested up to `tries`
    /// times, with the pauses of `backoff`; the others up to [`TRIES`] times, because a restart
    /// would cost more.
    ///
    /// # Errors
    /// The server serves none of the versions, or rejects the list.
    pub async fn list(
        &self,
        link: &Link,
        backoff: &mut Backoff,
        tries: u32,
    ) -> Result<Listed, RequestFailure> {
        let mut absent =
            RequestFailure::Absent(format!("no version of {} is known", self.row.kind));
        for version in self.row.versions {
            match self.list_in(link, version, backoff, tries).await {
                Err(failure @ RequestFailure::Absent(_)) => absent = failure,
                answer => return answer,
            }
        }
        Err(absent)
    }

    /// Lists in one version, like [`ListScope::list`]. A continuation that expires between two pages
    /// restarts the list.
    ///
    /// # Errors
    /// The server rejects the list.
    pub(crate) async fn list_in(
        &self,
        link: &Link,
        version: &'static str,
        backoff: &mut Backoff,
        tries: u32,
    ) -> Result<Listed, RequestFailure> {
        for _ in 0..RESTARTS {
            let mut pages = Pages { link, backoff: &mut *backoff, size: PAGE, tries };
            match self.pages(version, &mut pages).await {
                Err(PageError::Continuation) => {}
                Err(PageError::Failed(failure)) => return Err(failure),
                Ok(listed) => return Ok(listed),
            }
        }
        let mut whole = Pages { link, backoff, size: usize::MAX, tries };
        self.pages(version, &mut whole).await.map_err(|error| match error {
            PageError::Failed(failure) => failure,
            PageError::Continuation => {
                RequestFailure::Malformed("its continuation token keeps expiring".into())
            }
        })
    }

    async fn pages(
        &self,
        version: &'static str,
        pages: &mut Pages<'_>,
    ) -> Result<Listed, PageError> {
        let path = self.row.query(version, self.namespace.as_deref());
        let limit = match pages.size {
            usize::MAX => String::new(),
            size => format!("limit={size}"),
        };
        let mut listed = Listed { version, ..Listed::default() };
        let mut next = String::new();
        loop {
            let after = if next.is_empty() { String::new() } else { format!("&continue={next}") };
            let text = pages.get(&format!("{path}{limit}{after}"), next.is_empty()).await?;
            let wrong = |problem: String| RequestFailure::Malformed(format!("{path}: {problem}"));
            let page: ListPage<'_> =
                serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
            take(&mut listed, self.row, &page);
            next = escape(page.metadata.next.as_deref().unwrap_or_default());
            if next.is_empty() {
                listed.resource_version = page.metadata.resource_version;
                listed.objects.shrink_to_fit();
                // Without a resource version no watch can start.
                return match listed.resource_version.as_str() {
                    "" => Err(wrong("the list has no resourceVersion".into()).into()),
                    _ => Ok(listed),
                };
            }
        }
    }
}

/// How the pages of a list are requested.
struct Pages<'a> {
    link: &'a Link,
    backoff: &'a mut Backoff,
    /// `limit` of the requests; `usize::MAX` asks for the whole list.
    size: usize,
    /// How often the first page is requested.
    tries: u32,
}

enum PageError {
    /// The continuation token has expired.
    Continuation,
    Failed(RequestFailure),
}

impl From<RequestFailure> for PageError {
    fn from(failure: RequestFailure) -> PageError {
        PageError::Failed(failure)
    }
}

impl Pages<'_> {
    /// Retries when a server is busy or a connection breaks.
    async fn get(&mut self, path: &str, is_first: bool) -> Result<Vec<u8>, PageError> {
        for _ in 1..if is_first { self.tries } else { TRIES } {
            match self.link.get(path).await {
                Err(
                    failure @ (RequestFailure::Busy { .. }
                    | RequestFailure::Server { .. }
                    | RequestFailure::Unreachable(_)),
                ) => sleep(self.backoff.pause(&EndedStream::failed(failure, true))).await,
                answer => return answer.map_err(|failure| expired(failure, is_first)),
            }
        }
        self.link.get(path).await.map_err(|failure| expired(failure, is_first))
    }
}

fn expired(failure: RequestFailure, is_first: bool) -> PageError {
    match failure {
        RequestFailure::Expired(_) if !is_first => PageError::Continuation,
        failure => PageError::Failed(failure),
    }
}

/// Decodes a page in parallel; objects that cannot be read are listed and skipped.
fn take(listed: &mut Listed, row: &ReadKind, page: &ListPage<'_>) {
    let api_version = row.api_version(listed.version);
    let items = page.items.as_deref().unwrap_or_default();
    let decoded: Vec<Result<Object, DecodeError>> =
        items.par_iter().map(|item| read(item.get(), row, &api_version)).collect();
    for object in decoded {
        match object {
            Ok(object) => listed.objects.push(object),
            Err(problem) => listed.unreadable.push(problem.to_string()),
        }
    }
}

/// Decodes one object as the server sent it.
///
/// # Errors
/// The field that cannot be decoded, with its object.
pub fn read(text: &str, row: &ReadKind, api_version: &str) -> Result<Object, DecodeError> {
    let mut object = decode_item(text, row.kind, api_version)?;
    admission::identify(&mut object);
    Ok(object)
}

/// Percent-encodes a continuation token, which may contain characters special to a query.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            other => escaped += &format!("%{other:02X}"),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use kubestep_api::Kind;

    #[test]
    fn continuations_are_escaped() {
        assert_eq!(escape("aB3-_.~"), "aB3-_.~");
        assert_eq!(escape("a+b/c=="), "a%2Bb%2Fc%3D%3D");
    }

    #[test]
    fn a_page_gives_what_can_be_read_and_names_the_rest() {
        let page = r#"{"metadata": {"resourceVersion": "7", "continue": ""}, "items": [
            {"metadata": {"name": "a", "managedFields": [{"manager": "x"}]}},
            {"metadata": {"name": "b"}, "spec": {"unschedulable": "perhaps"}}]}"#;
        let page: ListPage<'_> = serde_json::from_str(page).unwrap();
        let mut listed = Listed { version: "v1", ..Listed::default() };
        take(&mut listed, kinds::row(Kind::Node).unwrap(), &page);
        assert_eq!(listed.objects[0].key().to_string(), "Node a");
        assert_eq!(listed.objects.len(), 1);
        assert!(listed.unreadable[0].starts_with("Node b: spec.unschedulable"), "{listed:?}");
    }
}
