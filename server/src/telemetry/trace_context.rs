//! Reads the W3C trace context of a call: <https://www.w3.org/TR/trace-context/>.
//!
//! The propagator of the OpenTelemetry SDK is not used because it is less strict than the standard: it accepts ids and
//! flags of any length (`-1` for `-01`), digits with a sign, a trailing `-`, and the first of several `traceparent`
//! headers, and it drops all but the first `tracestate` header.

use http::{HeaderMap, HeaderName};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Length of version 00, and of the part of later versions that is known: 2, 32, 16 and 2 digits, separated by `-`.
const LENGTH: usize = 55;

/// Returns the caller's span, or `None` if the headers name none or are malformed.
pub(super) fn caller(headers: &HeaderMap) -> Option<SpanContext> {
    let mut sent = headers.get_all(TRACEPARENT).into_iter();
    let (Some(traceparent), None) = (sent.next(), sent.next()) else {
        return None;
    };
    let (trace, span, flags) = parse(traceparent.to_str().ok()?)?;
    let caller = SpanContext::new(trace, span, flags, true, state(headers));
    // Ids of zeros alone are well-formed and not valid.
    caller.is_valid().then_some(caller)
}

fn parse(traceparent: &str) -> Option<(TraceId, SpanId, TraceFlags)> {
    let (known, more) = traceparent.split_at_checked(LENGTH)?;
    let parts: Vec<&str> = known.split('-').collect();
    let [version, trace, span, flags] = parts.try_into().ok()?;
    let are_digits = [(version, 2), (trace, 32), (span, 16), (flags, 2)]
        .iter()
        .all(|(part, count)| is_hex(part, *count));
    // A later version may have more fields behind those that are known; 255 is no version.
    let ends = more.is_empty() || version != "00" && more.starts_with('-');
    if !are_digits || !ends || version == "ff" {
        return None;
    }
    // All other flags are unknown.
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    Some((
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        flags,
    ))
}

/// Returns whether `text` is `count` lower-case hexadecimal digits.
fn is_hex(text: &str, count: usize) -> bool {
    text.len() == count
        && text
            .bytes()
            .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the vendors' state, from all its headers in order.
fn state(headers: &HeaderMap) -> TraceState {
    let lists: Vec<&str> = headers
        .get_all(TRACESTATE)
        .into_iter()
        .filter_map(|list| list.to_str().ok())
        .collect();
    // A state that cannot be parsed is dropped alone: the trace goes on without it, as the standard
    // demands.
    lists.join(",").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn of(given: &[(HeaderName, &str)]) -> Option<SpanContext> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        caller(&headers)
    }

    #[test]
    fn a_trace_is_joined() {
        for (version, flags, sampled, more) in [
            ("00", "01", true, ""),
            ("00", "00", false, ""),
            ("00", "03", true, ""),
            ("cc", "01", true, "-what"),
        ] {
            let given = format!("{version}-{TRACE}-{SPAN}-{flags}{more}");
            let caller = of(&[(TRACEPARENT, &given)]).unwrap();
            assert_eq!(
                (caller.trace_id().to_string(), caller.span_id().to_string()),
                (TRACE.into(), SPAN.into())
            );
            assert_eq!(caller.is_sampled(), sampled);
            assert!(caller.is_remote());
        }
    }

    #[test]
    fn a_malformed_trace_is_ignored() {
        let no_trace = "0".repeat(32);
        let no_span = "0".repeat(16);
        for wrong in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("cc-{TRACE}-{SPAN}-01more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", TRACE.replace('4', "+")),
            format!("00-{}-{SPAN}0-01", &TRACE[1..]),
            format!("00-{no_trace}-{SPAN}-01"),
            format!("00-{TRACE}-{no_span}-01"),
            format!("00_{TRACE}_{SPAN}_01"),
        ] {
            assert!(of(&[(TRACEPARENT, &wrong)]).is_none(), "{wrong}");
        }
        let good = format!("00-{TRACE}-{SPAN}-01");
        assert!(
            of(&[(TRACEPARENT, &good), (TRACEPARENT, &good)]).is_none(),
            "it is ambiguous"
        );
        assert!(of(&[]).is_none());
    }

    #[test]
    fn trace_state_headers_are_joined_in_order() {
        let good = format!("00-{TRACE}-{SPAN}-01");
        let state = |lists: &[&str]| {
            let lists = lists.iter().map(|list| (TRACESTATE, *list));
            let given: Vec<_> = [(TRACEPARENT, good.as_str())]
                .into_iter()
                .chain(lists)
                .collect();
            of(&given).unwrap().trace_state().header()
        };
        assert_eq!(state(&["one=1,two=2", "three=3"]), "one=1,two=2,three=3");
        assert_eq!(state(&["no list"]), "");
    }
}
