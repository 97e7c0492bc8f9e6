//! The W3C header `traceparent`: which trace and span a request follows from.

use std::fmt;

/// A span, for those that follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: u128,
    /// The span in it.
    pub span: u64,
}

impl TraceContext {
    /// Reads the header `traceparent`; none where the caller does not record the trace.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_known = version.len() == 2 && version != "ff" && trace.len() == 32 && span.len() == 16;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        let context = Self { trace: u128::from_str_radix(trace, 16).ok()?, span: u64::from_str_radix(span, 16).ok()? };
        (is_known && flags & 1 == 1 && context.trace != 0 && context.span != 0).then_some(context)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let context = TraceContext { trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, span: 0x00f0_67aa_0ba9_02b7 };
        let header = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        assert_eq!(context.to_string(), header);
        assert_eq!(TraceContext::parse(header), Some(context));
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0af7-00f0-01",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
        }
    }
}
