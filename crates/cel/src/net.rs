//! IP addresses and networks in CEL.
//!
//! Upstream: `ip.go` and `cidr.go` in `staging/src/k8s.io/apiserver/pkg/cel/library`.

use core::net::{IpAddr, Ipv4Addr};

use ::cel::common::types::{CelString, STRING_TYPE, Type};
use ::cel::common::value::{CowVal, StaticVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use ipnet::IpNet;

use crate::quantity::{CallResult, answer, failed, number, text};
use crate::val_methods;

static IP: Type = Type::new_unspecified_type("net.IP");
static CIDR: Type = Type::new_unspecified_type("net.CIDR");

/// An address as a value.
#[derive(Clone, PartialEq, Debug)]
pub struct Address(IpAddr);

/// A network as a value; its address may have bits beyond the prefix.
#[derive(Clone, PartialEq, Debug)]
pub struct Network(IpNet);

impl Val for Address {
    val_methods!(IP, Any);

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Address>() == Some(self)
    }
}

impl Val for Network {
    val_methods!(CIDR, Any);

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Network>() == Some(self)
    }
}

impl StaticVal for Address {}
impl StaticVal for Network {}

/// Adds the types and their functions.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(IP.to_owned())?;
    env.add_type(CIDR.to_owned())?;
    let string = || vec![STRING_TYPE];
    env.add_overload("ip", "string_to_ip", string(), |args| address_value(read(text(&args))?))?;
    env.add_overload("isIP", "is_ip", string(), |args| answer(read(text(&args)).is_ok()))?;
    env.add_overload("ip.isCanonical", "ip_is_canonical", string(), |args| {
        answer(read(text(&args))?.to_string() == text(&args))
    })?;
    env.add_overload("cidr", "string_to_cidr", string(), |args| {
        Ok(CowVal::owned(Network(read_network(text(&args))?)))
    })?;
    env.add_overload("isCIDR", "is_cidr", string(), |args| {
        answer(read_network(text(&args)).is_ok())
    })?;
    env.add_overload("string", "ip_to_string", vec![IP.to_owned()], |args| {
        Ok(CowVal::owned(CelString::from(address(&args, 0)?.to_string())))
    })?;
    env.add_overload("string", "cidr_to_string", vec![CIDR.to_owned()], |args| {
        Ok(CowVal::owned(CelString::from(network(&args, 0)?.to_string())))
    })?;
    declare_address(env)?;
    declare_network(env)
}

fn declare_address(env: &mut Env) -> Result<(), DeclarationError> {
    let mut member =
        |name: &str, op| env.add_member_overload(name, name, IP.to_owned(), Vec::new(), op);
    member("family", |args| number(if address(&args, 0)?.is_ipv4() { 4 } else { 6 }))?;
    member("isUnspecified", |args| answer(address(&args, 0)?.is_unspecified()))?;
    member("isLoopback", |args| answer(address(&args, 0)?.is_loopback()))?;
    member("isLinkLocalMulticast", |args| {
        answer(match address(&args, 0)? {
            IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
            IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        })
    })?;
    member("isLinkLocalUnicast", |args| answer(is_link_local(address(&args, 0)?)))?;
    member("isGlobalUnicast", |args| {
        let address = address(&args, 0)?;
        let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
        let special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
        answer(!(broadcast || special || is_link_local(address)))
    })
}

fn declare_network(env: &mut Env) -> Result<(), DeclarationError> {
    let mut member = |name: &str, id: &str, args: Vec<Type>, op| {
        env.add_member_overload(name, id, CIDR.to_owned(), args, op)
    };
    member("containsIP", "cidr_contains_ip_string", vec![STRING_TYPE], |args| {
        answer(network(&args, 0)?.contains(&read(text(&args[1..]))?))
    })?;
    member("containsIP", "cidr_contains_ip_ip", vec![IP.to_owned()], |args| {
        answer(network(&args, 0)?.contains(&address(&args, 1)?))
    })?;
    member("containsCIDR", "cidr_contains_cidr_string", vec![STRING_TYPE], |args| {
        answer(network(&args, 0)?.contains(&read_network(text(&args[1..]))?))
    })?;
    member("containsCIDR", "cidr_contains_cidr", vec![CIDR.to_owned()], |args| {
        answer(network(&args, 0)?.contains(&network(&args, 1)?))
    })?;
    member("ip", "cidr_ip", vec![], |args| address_value(network(&args, 0)?.addr()))?;
    member("prefixLength", "cidr_prefix_length", vec![], |args| {
        number(i64::from(network(&args, 0)?.prefix_len()))
    })?;
    member("masked", "cidr_masked", vec![], |args| {
        Ok(CowVal::owned(Network(network(&args, 0)?.trunc())))
    })
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn address_value<'b, 'v>(address: IpAddr) -> CallResult<'b, 'v> {
    Ok(CowVal::owned(Address(address)))
}

fn address(args: &[CowVal<'_, '_>], at: usize) -> Result<IpAddr, ExecutionError> {
    let known = args.get(at).and_then(|arg| arg.downcast_ref::<Address>());
    known.map(|known| known.0).ok_or_else(|| failed("ip", "no such overload"))
}

fn network(args: &[CowVal<'_, '_>], at: usize) -> Result<IpNet, ExecutionError> {
    let known = args.get(at).and_then(|arg| arg.downcast_ref::<Network>());
    known.map(|known| known.0).ok_or_else(|| failed("cidr", "no such overload"))
}

/// Parses an address; a zone or an IPv4 address in IPv6 form is rejected.
fn read(text: &str) -> Result<IpAddr, ExecutionError> {
    let error = |text: String| failed("ip", &text);
    if text.contains(':') && text.split_once('%').is_some_and(|(_, zone)| !zone.is_empty()) {
        return Err(error(format!("IP address {text:?} with zone value is not allowed")));
    }
    let address: IpAddr = text.parse().map_err(|_| {
        error(format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): \
             unable to parse IP"
        ))
    })?;
    match is_mapped(address) {
        true => Err(error(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))),
        false => Ok(address),
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

fn read_network(text: &str) -> Result<IpNet, ExecutionError> {
    let context = "network address parse error during conversion from string: ";
    let error = |why: &str| failed("cidr", &format!("{context}{why}"));
    let parse = |why: &str| error(&format!("{context}netip.ParsePrefix({text:?}): {why}"));
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| parse("no '/'"))?;
    let written: IpAddr = address
        .parse()
        .map_err(|_| parse(&format!("ParseAddr({address:?}): unable to parse IP")))?;
    let plain = bits == "0" || (!bits.starts_with('0') && bits.bytes().all(|b| b.is_ascii_digit()));
    let length: Option<u8> = bits.parse().ok().filter(|_| plain);
    let length = length.ok_or_else(|| parse(&format!("bad bits after slash: {bits:?}")))?;
    let network = IpNet::new(written, length).map_err(|_| parse("prefix length out of range"))?;
    match is_mapped(written) {
        true => Err(error(&format!("IPv4-mapped IPv6 address {text:?} is not allowed"))),
        false => Ok(network),
    }
}
