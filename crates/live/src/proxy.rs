//! The proxy on the way to an API server or an extender, chosen as Go's HTTP client chooses it, so
//! that kubestep reaches what kubectl and kube-scheduler reach.
//!
//! kube's own choice differs: it compares `NO_PROXY` with the proxy's address instead of the
//! server's, and sends requests to this machine through the proxy.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;
use kube::config::Kubeconfig;

/// The proxy that the cluster of a context names (`proxy-url`). `NO_PROXY` does not apply to it.
///
/// # Errors
/// It is not an address.
pub(crate) fn of_kubeconfig(
    read: &Kubeconfig,
    context: Option<&str>,
) -> Result<Option<Uri>, String> {
    let name = context.or(read.current_context.as_deref());
    let context = read.contexts.iter().find(|named| Some(named.name.as_str()) == name);
    let cluster = context.and_then(|named| Some(&named.context.as_ref()?.cluster));
    let cluster = read.clusters.iter().find(|named| Some(&named.name) == cluster);
    let url = cluster.and_then(|named| named.cluster.as_ref()?.proxy_url.as_deref());
    let parse = |url| address(url).ok_or_else(|| "proxy-url is not an address".to_owned());
    url.filter(|url| !url.is_empty()).map(parse).transpose()
}

/// The proxy that the environment names for a server: `HTTPS_PROXY` or `HTTP_PROXY`, unless
/// `NO_PROXY` exempts the server.
pub(crate) fn of_environment(server: &Uri) -> Option<Uri> {
    of_variables(server, &|name| std::env::var(name).ok())
}

fn of_variables(server: &Uri, variable: &dyn Fn(&str) -> Option<String>) -> Option<Uri> {
    let either = |name: &str| {
        let names = [name.to_owned(), name.to_lowercase()];
        names.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty())
    };
    let (name, port) = match server.scheme_str() {
        Some("https") => ("HTTPS_PROXY", 443),
        Some("http") => ("HTTP_PROXY", 80),
        _ => return None,
    };
    let proxy = address(&either(name)?)?;
    let host = server.host()?.trim_start_matches('[').trim_end_matches(']').to_lowercase();
    let port = server.port_u16().unwrap_or(port);
    let exempt = either("NO_PROXY").unwrap_or_default();
    let is_exempt = is_local(&host) || exempt.split(',').any(|rule| exempts(rule, &host, port));
    (!is_exempt).then_some(proxy)
}

/// A proxy's address; without a scheme it is HTTP.
fn address(text: &str) -> Option<Uri> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    whole.parse().ok().filter(|uri: &Uri| uri.host().is_some())
}

/// Requests to this machine never go through a proxy that the environment names.
fn is_local(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Whether a rule of `NO_PROXY` exempts a server: `*`, a network, an address or a domain with its
/// subdomains (only these, if it begins with a dot), the last two with a port if one is given.
fn exempts(rule: &str, host: &str, port: u16) -> bool {
    let rule = rule.trim().to_lowercase();
    let ip = host.parse::<IpAddr>().ok();
    if rule == "*" {
        return true;
    }
    if let Ok(network) = rule.parse::<IpNet>() {
        return ip.is_some_and(|ip| network.contains(&ip));
    }
    let (name, of_port) = split_port(&rule);
    if name.is_empty() || of_port.is_some_and(|of_port| of_port != port.to_string()) {
        return false;
    }
    if let Ok(address) = name.parse::<IpAddr>() {
        return ip == Some(address);
    }
    let domain = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    let parent = host.strip_suffix(domain.trim_start_matches('.'));
    ip.is_none()
        && parent
            .is_some_and(|rest| rest.ends_with('.') || rest.is_empty() && !domain.starts_with('.'))
}

/// Host and port of a rule; an IPv6 address with a port is in brackets.
fn split_port(rule: &str) -> (&str, Option<&str>) {
    let is_bracketed =
        |host: &'_ str| host.len() >= 2 && host.starts_with('[') && host.ends_with(']');
    match rule.rsplit_once(':') {
        Some((host, port)) if is_bracketed(host) => (&host[1..host.len() - 1], Some(port)),
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        _ => (rule, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chosen proxy with HTTPS_PROXY, HTTP_PROXY and NO_PROXY set.
    fn chosen(server: &str, exempt: &str) -> Option<String> {
        let variable = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://secure:3128".to_owned()),
            "http_proxy" => Some("plain:3129".to_owned()),
            "NO_PROXY" => Some(exempt.to_owned()),
            _ => None,
        };
        of_variables(&server.parse().unwrap(), &variable).map(|proxy| proxy.to_string())
    }

    #[test]
    fn each_scheme_has_its_variable() {
        assert_eq!(chosen("https://api.example.com:6443", "").unwrap(), "http://secure:3128/");
        assert_eq!(chosen("http://api.example.com", "").unwrap(), "http://plain:3129/");
        let none = |_: &str| None;
        assert_eq!(of_variables(&"https://api.example.com".parse().unwrap(), &none), None);
    }

    #[test]
    fn no_proxy_exempts_the_server() {
        let exempt = |server: &str, rules: &str| chosen(server, rules).is_none();
        for (server, rules) in [
            ("https://api.example.com", "*"),
            ("https://api.example.com", "other,api.example.com"),
            ("https://api.example.com", " Example.COM "),
            ("https://api.example.com", ".example.com,"),
            ("https://api.example.com", "*.example.com"),
            ("https://api.example.com:6443", "api.example.com:6443"),
            ("https://api.example.com", "api.example.com:443"),
            ("https://10.2.3.4:6443", "10.0.0.0/8"),
            ("https://10.2.3.4:6443", "10.2.3.4"),
            ("https://[fd00::1]:6443", "fd00::1"),
            ("https://[fd00::1]:6443", "[fd00::1]:6443"),
            ("https://localhost:6443", ""),
            ("https://127.0.0.1:6443", ""),
            ("https://[::1]:6443", ""),
        ] {
            assert!(exempt(server, rules), "{server} with {rules}");
        }
        for (server, rules) in [
            ("https://api.example.com", "example.org,,secure"),
            ("https://api.example.com:6443", "api.example.com:443"),
            ("https://example.com", ".example.com"),
            ("https://badexample.com", "example.com"),
            ("https://10.2.3.4", "10.3.0.0/16,2.3.4"),
            // The proxy's own name does not exempt anything.
            ("https://api.example.com", "secure:3128"),
        ] {
            assert!(!exempt(server, rules), "{server} with {rules}");
        }
    }

    #[test]
    fn a_kubeconfig_names_a_proxy_for_each_cluster() {
        let read = Kubeconfig::from_yaml(
            "clusters:\n- {name: a, cluster: {server: 'https://a', proxy-url: 'http://p:1'}}\n\
             - {name: b, cluster: {server: 'https://b'}}\n\
             - {name: c, cluster: {server: 'https://c', proxy-url: 'http://'}}\n\
             contexts:\n- {name: in-a, context: {cluster: a, user: u}}\n\
             - {name: in-b, context: {cluster: b, user: u}}\n\
             - {name: in-c, context: {cluster: c, user: u}}\ncurrent-context: in-a\n",
        )
        .unwrap();
        let of = |context| of_kubeconfig(&read, context);
        assert_eq!(of(None).unwrap().unwrap(), "http://p:1");
        assert_eq!(of(Some("in-b")), Ok(None));
        assert_eq!(of(Some("in-c")), Err("proxy-url is not an address".to_owned()));
        assert_eq!(of(Some("absent")), Ok(None));
    }
}
