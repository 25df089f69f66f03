//! Names of an endpoint's objects. Plain indexes: they are checked where they are used.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index of a table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A queue pair of this endpoint.
    QpId
}
id! {
    /// A completion queue of this endpoint.
    CqId
}
id! {
    /// A protection domain of this endpoint.
    PdId
}
id! {
    /// A shared receive queue of this endpoint.
    SrqId
}
id! {
    /// A block of memory that the driver knows; the core never sees its bytes.
    RegionId
}
