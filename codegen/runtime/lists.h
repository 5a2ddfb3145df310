// Python's lists as the programs of loops see them: functions of pyext's, which it hands in with
// the frame. An object is its address. A program that uses lists has this text before its own.
#pragma once

namespace rt {

struct Lists {
  // What an item is, or a number becomes. A List holds one of these in turn.
  enum Kind { kTruth, kInteger, kReal, kComplex, kList };
  using Object = __UINT64_TYPE__;
  using Index = __INT64_TYPE__;

  void* made;  // the objects that the statement at hand has made, and what it has noted
  Index (*length)(Object list);
  // Those below are true where the program has to exit.
  // An item of its kind, of a list or a tuple; NaNs are left to Python, for which one and the same
  // NaN equals itself.
  bool (*read[5])(Object list, Index index, void* result);
  bool (*read_tuple)(int size, Object list, Index index, void* result);
  bool (*read_numpy)(int dtype, Object list, Index index, void* result);  // an ir::DType
  // What a number becomes; and where it is to be put in the place of an item. Exit also where that
  // is no number, for its end may run code.
  bool (*make[4])(void* made, const void* number, Object* result);
  bool (*object_for[4])(void* made, Object list, Index index, const void* number, bool in_place,
                        Object* result);
  bool (*make_numpy)(int dtype, void* made, const void* number, Object* result);
  bool (*object_for_numpy)(int dtype, void* made, Object list, Index index, const void* number,
                           bool in_place, Object* result);
  bool (*append)(void* made, Object list, Object object);

  // What an item was before it becomes an object, or that there was none at this place.
  bool (*note)(void* made, Object list, Index index, Object object);

  void (*keep)(void* made);  // forgets what has been noted
  // Of what object_for has made.
  void (*store)(void* made, Object list, Index index, const void* number, Object object);
};

}  // namespace rt
