//! Extension headers: what follows the MSN, and what AETH frames have in its place.

use bytes::{Buf, BufMut};

use crate::layout::{low24, syndrome};
use crate::{AtomicEth, Msn, Nak, NakCode, ParseError, RegionKey, Reth, RnrTimer};

/// Reads 24 bits.
#[inline]
pub(crate) fn get_24(buf: &mut impl Buf) -> u32 {
    u32::from(buf.get_u8()) << 16 | u32::from(buf.get_u16())
}

/// Writes the low 24 bits of `value`.
#[inline]
pub(crate) fn put_24(buf: &mut impl BufMut, value: u32) {
    buf.put_slice(&low24(value));
}

impl Reth {
    #[inline]
    pub(crate) fn get(buf: &mut impl Buf) -> Self {
        Self { va: buf.get_u64(), rkey: RegionKey(buf.get_u32()), dma_len: buf.get_u32() }
    }

    #[inline]
    pub(crate) fn put(&self, buf: &mut impl BufMut) {
        buf.put_u64(self.va);
        buf.put_u32(self.rkey.0);
        buf.put_u32(self.dma_len);
    }
}

impl AtomicEth {
    #[inline]
    pub(crate) fn get(buf: &mut impl Buf) -> Self {
        Self {
            va: buf.get_u64(),
            rkey: RegionKey(buf.get_u32()),
            swap_add: buf.get_u64(),
            compare: buf.get_u64(),
        }
    }

    #[inline]
    pub(crate) fn put(&self, buf: &mut impl BufMut) {
        buf.put_u64(self.va);
        buf.put_u32(self.rkey.0);
        buf.put_u64(self.swap_add);
        buf.put_u64(self.compare);
    }
}

/// ACK extended transport header: syndrome and eMSN.
pub(crate) struct Aeth {
    pub(crate) nak: Option<NakCode>,
    pub(crate) emsn: Msn,
}

impl Aeth {
    #[inline]
    pub(crate) fn get(buf: &mut impl Buf) -> Result<Self, ParseError> {
        let nak = match buf.get_u8() {
            syndrome::ACK => None,
            code @ syndrome::RNR..=syndrome::RNR_LAST => {
                Some(NakCode::Rnr(RnrTimer::new(code - syndrome::RNR).ok_or(ParseError::Syndrome)?))
            }
            syndrome::RESYNC => Some(NakCode::Resync),
            syndrome::INVALID_REQUEST => Some(NakCode::InvalidRequest),
            syndrome::REMOTE_ACCESS => Some(NakCode::RemoteAccess),
            syndrome::REMOTE_OPERATIONAL => Some(NakCode::RemoteOperational),
            _ => return Err(ParseError::Syndrome),
        };
        Ok(Self { nak, emsn: Msn::from_low_bits(get_24(buf)) })
    }

    #[inline]
    pub(crate) fn put(buf: &mut impl BufMut, nak: Option<&Nak>, emsn: Msn) {
        buf.put_u8(match nak.map(|nak| nak.code) {
            None => syndrome::ACK,
            Some(NakCode::Rnr(timer)) => syndrome::RNR | timer.get(),
            Some(NakCode::Resync) => syndrome::RESYNC,
            Some(NakCode::InvalidRequest) => syndrome::INVALID_REQUEST,
            Some(NakCode::RemoteAccess) => syndrome::REMOTE_ACCESS,
            Some(NakCode::RemoteOperational) => syndrome::REMOTE_OPERATIONAL,
        });
        put_24(buf, emsn.get());
    }
}
