-- Wireshark dissector for DCP, version 1: every field of docs/PROTOCOL.md, section 1.
--
--   wireshark -X lua_script:docs/wireshark/dcp.lua run.pcap
--   tshark    -X lua_script:docs/wireshark/dcp.lua -r run.pcap -Y dcp.ho
--
-- Copyright (c) 2026 The DCP authors
-- SPDX-License-Identifier: MIT

local dcp = Proto("dcp", "DCP")

local SERVICE_PORT = 17791
local HO_LEN = 15 -- BTH and MSN
local TAG_ACK, TAG_DATA, TAG_HO = 1, 2, 3

-- Operations ---------------------------------------------------------------------------------------------------------

-- Extension headers behind the MSN, in their order; `answers`: of the answer stream; `payload`: one may follow.
local operations = {
  [0x00] = { "SEND_FIRST", { "ssn" }, payload = true },
  [0x01] = { "SEND_MIDDLE", { "ssn" }, payload = true },
  [0x02] = { "SEND_LAST", { "ssn" }, payload = true },
  [0x03] = { "SEND_LAST_IMM", { "ssn", "imm" }, payload = true },
  [0x04] = { "SEND_ONLY", { "ssn" }, payload = true },
  [0x05] = { "SEND_ONLY_IMM", { "ssn", "imm" }, payload = true },
  [0x06] = { "WRITE_FIRST", { "reth" }, payload = true },
  [0x07] = { "WRITE_MIDDLE", { "reth" }, payload = true },
  [0x08] = { "WRITE_LAST", { "reth" }, payload = true },
  [0x09] = { "WRITE_LAST_IMM", { "ssn", "reth", "imm" }, payload = true },
  [0x0A] = { "WRITE_ONLY", { "reth" }, payload = true },
  [0x0B] = { "WRITE_ONLY_IMM", { "ssn", "reth", "imm" }, payload = true },
  [0x0C] = { "READ_REQUEST", { "reth" } },
  [0x0D] = { "READ_RESP_FIRST", { "rmsn" }, payload = true, answers = true },
  [0x0E] = { "READ_RESP_MIDDLE", { "rmsn" }, payload = true, answers = true },
  [0x0F] = { "READ_RESP_LAST", { "rmsn" }, payload = true, answers = true },
  [0x10] = { "READ_RESP_ONLY", { "rmsn" }, payload = true, answers = true },
  [0x12] = { "ATOMIC_ACK", { "rmsn", "original" }, answers = true },
  [0x13] = { "CMP_SWAP", { "atomic" } },
  [0x14] = { "FETCH_ADD", { "atomic" } },
  [0x11] = { "ACK", { "aeth", "received" }, control = true },
  [0x81] = { "CNP", { "cnp" }, control = true },
  [0xC0] = { "PROBE", { "t1", "zero" }, control = true },
  [0xC1] = { "PROBE_ACK", { "aeth", "received", "t1", "t2", "t3" }, control = true },
}

local opcode_names = {}
for opcode, operation in pairs(operations) do opcode_names[opcode] = operation[1] end

local tag_names = { [0] = "not DCP", [TAG_ACK] = "ACK class", [TAG_DATA] = "data", [TAG_HO] = "header-only" }
local ecn_names = { [0] = "not ECT", [1] = "ECT(1)", [2] = "ECT(0)", [3] = "CE" }
local icrc_names = { [0] = "bad", [1] = "good" }

-- Fields -------------------------------------------------------------------------------------------------------------

local f = {
  class = ProtoField.uint8("dcp.class", "Traffic class", base.DEC),
  tag = ProtoField.uint8("dcp.tag", "Tag", base.DEC, tag_names),
  ecn = ProtoField.uint8("dcp.ecn", "ECN", base.DEC, ecn_names),
  -- Only where they are true, so that `dcp.ho`, `dcp.ho.returned` and `dcp.nak` alone are filters.
  ho = ProtoField.bool("dcp.ho", "Header-only: a packet that a switch has trimmed"),
  ho_returned = ProtoField.bool("dcp.ho.returned", "Returned to its sender"),
  opcode = ProtoField.uint8("dcp.opcode", "Opcode", base.HEX, opcode_names),
  se = ProtoField.bool("dcp.se", "Solicited event", 8, nil, 0x80),
  m = ProtoField.bool("dcp.m", "M: speaks of the answer stream", 8, nil, 0x40),
  pad = ProtoField.uint8("dcp.pad", "PadCnt", base.DEC, nil, 0x30),
  tver = ProtoField.uint8("dcp.tver", "TVer", base.DEC, nil, 0x0F),
  pkey = ProtoField.uint16("dcp.pkey", "P_Key", base.HEX),
  fecn = ProtoField.bool("dcp.fecn", "FECN", 8, nil, 0x80),
  becn = ProtoField.bool("dcp.becn", "BECN", 8, nil, 0x40),
  retry = ProtoField.uint16("dcp.retry", "sRetryNo", base.DEC),
  retry_high = ProtoField.uint8("dcp.retry.high", "sRetryNo, high bits", base.DEC, nil, 0x3E),
  retry_low = ProtoField.uint8("dcp.retry.low", "sRetryNo, low bits", base.DEC, nil, 0x7F),
  returned = ProtoField.bool("dcp.returned", "R: returned to the sender", 8, nil, 0x01),
  dest_qpn = ProtoField.uint24("dcp.dest_qpn", "DestQP", base.HEX),
  ackreq = ProtoField.bool("dcp.ackreq", "AckReq", 8, nil, 0x80),
  psn = ProtoField.uint24("dcp.psn", "PSN", base.DEC),
  msn = ProtoField.uint24("dcp.msn", "MSN", base.DEC),
  ssn = ProtoField.uint24("dcp.ssn", "SSN", base.DEC),
  rmsn = ProtoField.uint24("dcp.rmsn", "RMSN", base.DEC),
  va = ProtoField.uint64("dcp.va", "Virtual address", base.HEX),
  rkey = ProtoField.uint32("dcp.rkey", "rkey", base.HEX),
  dmalen = ProtoField.uint32("dcp.dmalen", "DMALen: bytes of the message", base.DEC),
  imm = ProtoField.uint32("dcp.imm", "Immediate data", base.HEX),
  swap_add = ProtoField.uint64("dcp.atomic.swap_add", "Swap or add", base.HEX),
  compare = ProtoField.uint64("dcp.atomic.compare", "Compare", base.HEX),
  original = ProtoField.uint64("dcp.atomic.original", "Original value", base.HEX),
  syndrome = ProtoField.uint8("dcp.syndrome", "Syndrome", base.HEX),
  emsn = ProtoField.uint24("dcp.emsn", "eMSN", base.DEC),
  received = ProtoField.uint32("dcp.received", "Received bytes", base.DEC),
  nak = ProtoField.bool("dcp.nak", "NAK"),
  nak_msn = ProtoField.uint24("dcp.nak.msn", "MSN refused", base.DEC),
  rnr_timer = ProtoField.uint8("dcp.rnr_timer", "RNR timer code", base.DEC, nil, 0x1F),
  cnp = ProtoField.bytes("dcp.cnp", "Zero bytes of a CNP"),
  zero = ProtoField.bytes("dcp.zero", "Zero bytes of a PROBE"),
  t1 = ProtoField.uint32("dcp.t1", "t1: probe sent", base.DEC),
  t2 = ProtoField.uint32("dcp.t2", "t2: probe arrived", base.DEC),
  t3 = ProtoField.uint32("dcp.t3", "t3: answer built", base.DEC),
  delay = ProtoField.uint32("dcp.receiver_delay", "Receiver delay, t3 - t2 (ns)", base.DEC),
  payload = ProtoField.bytes("dcp.payload", "Payload"),
  payload_len = ProtoField.uint16("dcp.payload_len", "Payload bytes", base.DEC),
  icrc = ProtoField.bytes("dcp.icrc", "ICRC"),
  icrc_status = ProtoField.uint8("dcp.icrc.status", "ICRC status", base.DEC, icrc_names),
}
do
  local all = {}
  for _, field in pairs(f) do all[#all + 1] = field end
  dcp.fields = all
end

local e = {
  opcode = ProtoExpert.new("dcp.bad_opcode", "No such opcode", expert.group.MALFORMED, expert.severity.ERROR),
  tag = ProtoExpert.new("dcp.bad_tag", "Tag and opcode do not agree", expert.group.PROTOCOL, expert.severity.WARN),
  length = ProtoExpert.new("dcp.bad_length", "Length does not fit the opcode", expert.group.MALFORMED,
    expert.severity.ERROR),
  icrc = ProtoExpert.new("dcp.bad_icrc", "Wrong ICRC", expert.group.CHECKSUM, expert.severity.ERROR),
  trimmed = ProtoExpert.new("dcp.trimmed", "Trimmed by a switch", expert.group.SEQUENCE, expert.severity.NOTE),
  nak = ProtoExpert.new("dcp.refused", "NAK", expert.group.RESPONSE_CODE, expert.severity.WARN),
}
dcp.experts = { e.opcode, e.tag, e.length, e.icrc, e.trimmed, e.nak }

local ip = {
  dsfield = Field.new("ip.dsfield"),
  len = Field.new("ip.len"),
  id = Field.new("ip.id"),
  df = Field.new("ip.flags.df"),
  src = Field.new("ip.src"),
  dst = Field.new("ip.dst"),
}
local udp_length = Field.new("udp.length")

-- Preferences --------------------------------------------------------------------------------------------------------

local ICRC_DETECT, ICRC_ALWAYS, ICRC_NEVER = 1, 2, 3
dcp.prefs.port = Pref.uint("UDP port", SERVICE_PORT, "The service port of DCP. Other ports: Decode As, or the heuristic")
dcp.prefs.heuristic = Pref.bool("Look on all UDP ports", false, "Take frames whose every reserved bit fits for DCP")
dcp.prefs.icrc = Pref.enum("ICRC", ICRC_DETECT, "Frames do not tell whether they carry one", {
  { 1, "where it is right, or where no payload can be", ICRC_DETECT },
  { 2, "on every frame but HO", ICRC_ALWAYS },
  { 3, "never", ICRC_NEVER },
}, false)

-- ICRC ---------------------------------------------------------------------------------------------------------------

local crc_table
local function crc32(text, crc)
  if not crc_table then
    crc_table = {}
    for byte = 0, 255 do
      local c = byte
      for _ = 1, 8 do
        c = bit.bxor(bit.rshift(c, 1), bit.band(c, 1) == 1 and 0xEDB88320 or 0)
      end
      crc_table[byte] = c
    end
  end
  for i = 1, #text do
    crc = bit.bxor(crc_table[bit.band(bit.bxor(crc, text:byte(i)), 0xFF)], bit.rshift(crc, 8))
  end
  return crc
end

local function be16(value) return string.char(math.floor(value / 256) % 256, value % 256) end

local function address(field)
  local a, b, c, d = tostring(field.value):match("(%d+)%.(%d+)%.(%d+)%.(%d+)")
  return string.char(tonumber(a), tonumber(b), tonumber(c), tonumber(d))
end

-- The four bytes that should end the datagram: RoCEv2's CRC, over the headers with what switches change as FF.
local function icrc_of(tvb, pinfo, length)
  local masked = string.rep("\255", 8)
    .. "\69\255" .. be16(ip.len().value) .. be16(ip.id().value) .. (ip.df().value and "\64\0" or "\0\0")
    .. "\255\17\255\255" .. address(ip.src()) .. address(ip.dst())
    .. be16(pinfo.src_port) .. be16(pinfo.dst_port) .. be16(udp_length().value) .. "\255\255"
    .. tvb:raw(0, 4) .. "\255" .. tvb:raw(5, length - 5)
  local crc = bit.bnot(crc32(masked, 0xFFFFFFFF))
  local bytes = {}
  for shift = 0, 24, 8 do bytes[#bytes + 1] = string.char(bit.band(bit.rshift(crc, shift), 0xFF)) end
  return table.concat(bytes)
end

-- Headers ------------------------------------------------------------------------------------------------------------

local function add_bth(tree, tvb)
  local bth = tree:add(dcp, tvb(0, 12), "Base transport header")
  bth:add(f.opcode, tvb(0, 1))
  bth:add(f.se, tvb(1, 1))
  bth:add(f.m, tvb(1, 1))
  bth:add(f.pad, tvb(1, 1))
  bth:add(f.tver, tvb(1, 1))
  bth:add(f.pkey, tvb(2, 2))
  bth:add(f.fecn, tvb(4, 1))
  bth:add(f.becn, tvb(4, 1))
  bth:add(f.retry_high, tvb(4, 1))
  bth:add(f.returned, tvb(4, 1))
  bth:add(f.dest_qpn, tvb(5, 3))
  bth:add(f.ackreq, tvb(8, 1))
  bth:add(f.retry_low, tvb(8, 1))
  bth:add(f.psn, tvb(9, 3))
  local retry = tvb(4, 1):bitfield(2, 5) * 128 + tvb(8, 1):bitfield(1, 7)
  bth:add(f.retry, tvb(4, 5), retry):set_generated()
  return retry
end

local nak_names = {
  [0x60] = "resync", [0x61] = "invalid request", [0x62] = "remote access", [0x63] = "remote operational",
}

local function syndrome_text(syndrome)
  if syndrome == 0x1F then return "ACK" end
  if syndrome >= 0x20 and syndrome <= 0x3F then return "RNR NAK" end
  return nak_names[syndrome] and "NAK: " .. nak_names[syndrome] or "no such syndrome"
end

local function add_aeth(tree, tvb, at)
  local syndrome = tvb(at, 1):uint()
  local text = syndrome_text(syndrome)
  tree:add(f.syndrome, tvb(at, 1)):append_text(" (" .. text .. ")")
  tree:add(f.emsn, tvb(at + 1, 3))
  local is_nak = syndrome ~= 0x1F
  if is_nak then
    tree:add(f.nak, tvb(at, 1), true):set_generated()
    if syndrome >= 0x20 and syndrome <= 0x3F then tree:add(f.rnr_timer, tvb(at, 1)) end
    tree:add(f.nak_msn, tvb(9, 3)):set_generated()
    tree:add_proto_expert_info(e.nak, text)
  end
  return text .. " eMSN " .. tvb(at + 1, 3):uint()
end

-- Each adds its fields and returns a text for the summary; its length is beside it.
local extensions = {
  ssn = { 3, function(tree, tvb, at) tree:add(f.ssn, tvb(at, 3)) end },
  rmsn = { 3, function(tree, tvb, at)
    tree:add(f.rmsn, tvb(at, 3))
    return "RMSN " .. tvb(at, 3):uint()
  end },
  imm = { 4, function(tree, tvb, at) tree:add(f.imm, tvb(at, 4)) end },
  reth = { 16, function(tree, tvb, at)
    local reth = tree:add(dcp, tvb(at, 16), "RDMA extended header")
    reth:add(f.va, tvb(at, 8))
    reth:add(f.rkey, tvb(at + 8, 4))
    reth:add(f.dmalen, tvb(at + 12, 4))
    return "of " .. tvb(at + 12, 4):uint()
  end },
  atomic = { 28, function(tree, tvb, at)
    local atomic = tree:add(dcp, tvb(at, 28), "Atomic extended header")
    atomic:add(f.va, tvb(at, 8))
    atomic:add(f.rkey, tvb(at + 8, 4))
    atomic:add(f.swap_add, tvb(at + 12, 8))
    atomic:add(f.compare, tvb(at + 20, 8))
  end },
  original = { 8, function(tree, tvb, at) tree:add(f.original, tvb(at, 8)) end },
  aeth = { 4, add_aeth },
  received = { 4, function(tree, tvb, at) tree:add(f.received, tvb(at, 4)) end },
  cnp = { 16, function(tree, tvb, at) tree:add(f.cnp, tvb(at, 16)) end },
  zero = { 2, function(tree, tvb, at) tree:add(f.zero, tvb(at, 2)) end },
  t1 = { 4, function(tree, tvb, at) tree:add(f.t1, tvb(at, 4)) end },
  t2 = { 4, function(tree, tvb, at) tree:add(f.t2, tvb(at, 4)) end },
  t3 = { 4, function(tree, tvb, at)
    tree:add(f.t3, tvb(at, 4))
    local delay = (tvb(at, 4):uint() - tvb(at - 4, 4):uint()) % 4294967296
    tree:add(f.delay, tvb(at - 4, 8), delay):set_generated()
  end },
}

-- Bytes of BTH, MSN and extensions.
local function header_len(operation)
  local len = operation.control and 12 or HO_LEN
  for _, name in ipairs(operation[2]) do len = len + extensions[name][1] end
  return len
end

local function add_extensions(tree, tvb, operation)
  local at, words = operation.control and 12 or HO_LEN, {}
  for _, name in ipairs(operation[2]) do
    local len, add = extensions[name][1], extensions[name][2]
    if at + len > tvb:len() then
      tree:add_proto_expert_info(e.length)
      return words, nil
    end
    words[#words + 1] = add(tree, tvb, at)
    at = at + len
  end
  return words, at
end

-- Payload and ICRC: what is behind the headers.
local function add_rest(tree, tvb, pinfo, operation, at)
  local rest = tvb:len() - at
  local has_icrc = false
  if rest >= 4 and dcp.prefs.icrc ~= ICRC_NEVER and tvb:reported_len() == tvb:len() then
    local is_right = icrc_of(tvb, pinfo, tvb:len() - 4) == tvb:raw(tvb:len() - 4, 4)
    has_icrc = is_right or dcp.prefs.icrc == ICRC_ALWAYS or (not operation.payload and rest == 4)
    if has_icrc then
      local range = tvb(tvb:len() - 4, 4)
      tree:add(f.icrc, range)
      tree:add(f.icrc_status, range, is_right and 1 or 0):set_generated()
      if not is_right then tree:add_proto_expert_info(e.icrc) end
    end
  end
  local payload = tvb:reported_len() - at - (has_icrc and 4 or 0)
  local shown = math.min(payload, tvb:len() - at)
  if operation.payload then tree:add(f.payload_len, payload):set_generated() end
  if shown > 0 then tree:add(f.payload, tvb(at, shown)) end
  if payload > 0 and not operation.payload then tree:add_proto_expert_info(e.length) end
  return payload
end

-- Dissector ----------------------------------------------------------------------------------------------------------

local function tag_of()
  local dsfield = ip.dsfield()
  return dsfield and math.floor(dsfield.value / 4) % 4
end

local function add_tos(tree, tag)
  local tos = ip.dsfield().value
  tree:add(f.class, math.floor(tos / 16)):set_generated()
  tree:add(f.tag, tag):set_generated()
  tree:add(f.ecn, tos % 4):set_generated()
end

local function expected_tag(operation) return operation.control and TAG_ACK or TAG_DATA end

local function summary(pinfo, tvb, operation, words)
  local text = operation[1]
  if not operation.control then
    text = text .. " MSN " .. tvb(12, 3):uint() .. " PSN " .. tvb(9, 3):uint()
  end
  for _, word in pairs(words) do text = text .. " " .. word end
  pinfo.cols.info = text .. string.format(" QP 0x%06x", tvb(5, 3):uint())
end

local function dissect_ho(tvb, pinfo, tree, operation, retry)
  tree:add(f.msn, tvb(12, 3))
  local returned = tvb(4, 1):bitfield(7, 1) == 1
  tree:add(f.ho, true):set_generated()
  if returned then tree:add(f.ho_returned, tvb(4, 1), true):set_generated() end
  tree:add_proto_expert_info(e.trimmed)
  tree:append_text(returned and ", header-only, returned" or ", header-only")
  summary(pinfo, tvb, operation, { "retry " .. retry })
  pinfo.cols.info:prepend(returned and "[HO returned] " or "[HO] ")
  if tvb:reported_len() ~= HO_LEN or operation.control then tree:add_proto_expert_info(e.length) end
end

function dcp.dissector(tvb, pinfo, root)
  local tag = tag_of()
  if not tag or tvb:len() < 12 then return 0 end
  pinfo.cols.protocol = "DCP"
  local tree = root:add(dcp, tvb())
  add_tos(tree, tag)
  local retry = add_bth(tree, tvb)
  local operation = operations[tvb(0, 1):uint()]
  if not operation then
    tree:add_proto_expert_info(e.opcode)
    return tvb:len()
  end
  tree:append_text(", " .. operation[1])
  if not operation.control and tvb:len() < HO_LEN then
    tree:add_proto_expert_info(e.length)
    return tvb:len()
  end
  if tag == TAG_HO then
    dissect_ho(tvb, pinfo, tree, operation, retry)
    return tvb:len()
  end
  if tag ~= expected_tag(operation) then tree:add_proto_expert_info(e.tag) end
  if not operation.control then tree:add(f.msn, tvb(12, 3)) end
  local words, at = add_extensions(tree, tvb, operation)
  if at then
    local payload = add_rest(tree, tvb, pinfo, operation, at)
    if operation.payload then words[#words + 1] = "len " .. payload end
  end
  summary(pinfo, tvb, operation, words)
  return tvb:len()
end

-- On other ports: every reserved bit is zero, and tag, opcode and length agree.
local function looks_like_dcp(tvb)
  local tag, len = tag_of(), tvb:reported_len()
  if not tag or tag == 0 or tvb:len() < 12 then return false end
  local operation = operations[tvb(0, 1):uint()]
  if not operation or tvb(1, 1):bitfield(2, 6) ~= 0 or tvb(4, 1):bitfield(0, 1) ~= 0 then return false end
  if tag == TAG_HO then return len == HO_LEN and not operation.control end
  local rest = len - header_len(operation)
  return tag == expected_tag(operation) and rest >= 0 and (operation.payload or rest == 0 or rest == 4)
end

dcp:register_heuristic("udp", function(tvb, pinfo, tree)
  if not dcp.prefs.heuristic or not looks_like_dcp(tvb) then return false end
  dcp.dissector(tvb, pinfo, tree)
  return true
end)

local ports = DissectorTable.get("udp.port")
local port = dcp.prefs.port
ports:add(port, dcp)
function dcp.prefs_changed()
  if port ~= dcp.prefs.port then
    ports:remove(port, dcp)
    port = dcp.prefs.port
    ports:add(port, dcp)
  end
end
